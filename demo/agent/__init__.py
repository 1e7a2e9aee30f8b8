"""The support agent of the demo: finds refunds that customers are due, and asks for them."""
