"""Tables, README blocks and reports: text from measures and figures."""
