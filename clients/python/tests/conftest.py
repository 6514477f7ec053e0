"""The tests run against the server at MAYFLY_URL, with MAYFLY_KEY, and send mail to MAYFLY_SMTP."""

pytest_plugins = ["pytester"]
