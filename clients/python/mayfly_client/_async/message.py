"""Messages of an inbox, and their attachments."""

from __future__ import annotations

from typing import cast

from .. import _types as types
from .._requests import path_of
from .connection import AsyncConnection


class AsyncAttachment(types.AttachmentAttributes):
    """An attachment of a message: its description, and its content on request."""

    def __init__(
        self, connection: AsyncConnection, path: str, data: types.Attachment, password: str | None = None
    ) -> None:
        self.__dict__.update(data)
        self._connection = connection
        self._path = f"{path}/attachments/{data['index']}"
        self._password = password

    async def bytes(self) -> bytes:
        """The decoded content. Raises ApiError."""
        return await self._connection.read(self._path, {"password": self._password})


class AsyncMessage(types.MessageAttributes):
    """A message of an inbox. Its attributes are the properties of the API; `from` is `from_`."""

    attachments: list[AsyncAttachment]
    cursor: str | None
    """The position just after this message, for `since`, if a wait returned it; otherwise None."""
    data: types.Message
    """The JSON of the API."""

    def __init__(
        self,
        connection: AsyncConnection,
        data: types.Message,
        password: str | None = None,
        cursor: str | None = None,
    ) -> None:
        self.__dict__.update({**data, "from_": data["from"]})
        self._connection = connection
        self._path = path_of("inboxes", data["inbox_id"], "messages", data["id"])
        self._password = password
        self.attachments = [AsyncAttachment(connection, self._path, each, password) for each in data["attachments"]]
        self.cursor = cursor
        self.data = data

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.subject!r} from {self.sender}>"

    async def raw(self) -> bytes:
        """The source, byte for byte as it was received. Raises ApiError."""
        return await self._connection.read(f"{self._path}/raw", {"password": self._password})

    async def check_html(self) -> types.HtmlCheck:
        """Which mail clients support the HTML and CSS of the message. Raises ApiError, also if it has no HTML."""
        answer = await self._connection.get(f"{self._path}/html-check", {"password": self._password})
        return cast("types.HtmlCheck", answer)

    async def check_links(self) -> list[types.CheckedLink]:
        """Lets the server request each link of the message, which may take 25 seconds. Raises ApiError."""
        answer = await self._connection.post(f"{self._path}/link-check", {"password": self._password})
        return cast("list[types.CheckedLink]", answer)

    async def delete(self) -> types.DeletedMessage:
        """Deletes the message permanently. Raises ApiError."""
        answer = await self._connection.delete(self._path, {"password": self._password})
        return cast("types.DeletedMessage", answer)
