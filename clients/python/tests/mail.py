"""Sends mail to the server under test."""

from __future__ import annotations

import os
import smtplib
from collections.abc import Mapping, Sequence
from email.message import EmailMessage


def send_mail(
    to: str,
    subject: str = "",
    text: str = "",
    html: str | None = None,
    sender: str = "App <app@example.com>",
    attachments: Sequence[Mapping[str, str]] = (),
) -> None:
    """Sends a mail to MAYFLY_SMTP (host:port). Attachments have a `filename` and their `content`."""
    mail = EmailMessage()
    mail["From"] = sender
    mail["To"] = to
    mail["Subject"] = subject
    mail.set_content(text)
    if html is not None:
        mail.add_alternative(html, subtype="html")
    for attachment in attachments:
        mail.add_attachment(
            attachment["content"].encode(),
            maintype="application",
            subtype="octet-stream",
            filename=attachment["filename"],
        )
    host, _, port = os.environ["MAYFLY_SMTP"].rpartition(":")
    with smtplib.SMTP(host, int(port), timeout=10) as smtp:
        smtp.send_message(mail)
