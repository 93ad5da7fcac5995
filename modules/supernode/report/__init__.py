"""What a run leaves for people and for machines: text, HTML, JSON, JUnit. Pure: a Run and its Design in, text out."""
