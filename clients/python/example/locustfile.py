"""locust -f locustfile.py --headless -u 3 -t 30s, with MAYFLY_KEY set."""

from locust import between, task

from mayfly_client import Inbox
from mayfly_client.locust import MayflyUser


class SignUp(MayflyUser):
    """Signs up, and waits for the code and the link in the mail."""

    wait_time = between(0.1, 0.5)

    @task
    def sign_up(self) -> None:
        """One sign-up with an inbox of its own, which is deleted at the end of the block."""
        with self.mayfly.inboxes.create(duration="30m", labels={"run": "locust"}) as inbox:
            send_mail(inbox)
            assert inbox.wait_for_code(subject="welcome", timeout=20) == "493201"
            assert inbox.wait_for_link("verify") == "https://app.example/verify?t=1"


def send_mail(inbox: Inbox) -> None:
    """Stands for a request to your application, which sends the mail."""
    inbox.inject_message(
        from_="App <no-reply@app.example>",
        subject="Welcome",
        text="Your code is 493201: https://app.example/verify?t=1",
    )
