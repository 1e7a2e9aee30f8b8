"""HTTP/JSON APIs with ETags as targets: GET is the state, PATCH or PUT with If-Match the commit."""
