"""`slack`: a run's owner is sent a message with buttons, which changes when it has been decided; who clicked is Slack's word."""
