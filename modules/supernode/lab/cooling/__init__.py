"""The lab's cooling units: one small thermal model, and two front ends of it that speak what real units speak."""
