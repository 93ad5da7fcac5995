"""Checks observe; they do not repair.

facts (a command and a pure parse), gates and localise (pure), gather (a bounded pool), run (pytest in-process).
"""
