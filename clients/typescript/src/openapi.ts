// Written by `npm run docs`: the schemas of the OpenAPI document, and the query of each operation.

export interface components {
    schemas: {
        /** @description The owner of keys and inboxes, with its limits. */
        Account: {
            /** @description The id of the account. */
            id: string;
            /** @description A name to show to people. */
            name: string;
            /** @description The name of its plan. */
            plan: string;
            /** @description Null if its plan is no longer configured. The account then has no API access. */
            limits: components["schemas"]["Limits"] | null;
            /** @description The environments of its keys that are not revoked. */
            environments: string[];
            /**
             * Format: date-time
             * @description When it was opened.
             */
            created_at: string;
        };
        /** @description The account's own limits. For a limit that is left out, the plan's applies. */
        AccountLimits: {
            requests_per_minute?: number;
            retention?: string;
            max_messages?: number;
        };
        /** @description An account, with its new key, if one was issued. */
        AccountWithKey: {
            /** @description The id of the account. */
            id: string;
            /** @description A name to show to people. */
            name: string;
            /** @description The name of its plan. */
            plan: string;
            /** @description Null if its plan is no longer configured. The account then has no API access. */
            limits: components["schemas"]["Limits"] | null;
            /** @description The environments of its keys that are not revoked. */
            environments: string[];
            /**
             * Format: date-time
             * @description When it was opened.
             */
            created_at: string;
            /** @description Its first key with the scope `admin`. The secret is only in this answer. Null if the account already has such a key, or no API access. */
            key: components["schemas"]["KeyWithSecret"] | null;
        };
        /** @description An attachment of a mail. */
        Attachment: {
            /** @description Its number in the path of its content, from 0. */
            index: number;
            /** @description The file name that the sender declared. */
            filename: string | null;
            /** @description The media type that the sender declared. */
            content_type: string;
            /** @description The decoded size in bytes. */
            size: number;
            /** @description The id that `cid:` links in the HTML refer to. */
            content_id: string | null;
            /** @description Whether it is to be shown within the mail. */
            inline: boolean;
            /** @description SHA-256 of the decoded bytes. */
            sha256: string;
        };
        /** @description One POST to an endpoint. */
        Attempt: {
            /**
             * Format: date-time
             * @description When it started.
             */
            time: string;
            /** @description The status that the endpoint answered; null if it did not answer. */
            status: number | null;
            /** @description From its start to the answer or the failure. */
            latency_ms: number;
            /** @description The beginning of the answer, at most 1 kB, read as UTF-8; null if there was none, for a sample or a redirect, and after the inbox has ended. */
            answer: string | null;
            /** @description Why it failed; null if it succeeded. */
            error: string | null;
        };
        /** @description Whether a mail is from its declared sender, as verified when it was received: SPF, DKIM, DMARC, ARC. */
        Authentication: {
            /** @description Null if it was not verified. */
            spf: {
                /**
                 * @description The result as in RFC 8601, section 2.7.
                 * @enum {unknown}
                 */
                result: "none" | "neutral" | "pass" | "fail" | "softfail" | "policy" | "temperror" | "permerror";
                /** @description The domain of MAIL FROM, or of EHLO if MAIL FROM is empty. */
                domain: string | null;
                /** @description Details of the result; null if there are none. */
                detail: string | null;
            } | null;
            /** @description One result for each signature. */
            dkim: {
                /**
                 * @description The result as in RFC 8601, section 2.7.
                 * @enum {unknown}
                 */
                result: "none" | "neutral" | "pass" | "fail" | "softfail" | "policy" | "temperror" | "permerror";
                /** @description The domain that signed. */
                domain: string | null;
                /** @description The selector of the key. */
                selector: string | null;
                /** @description The algorithm of the signature. */
                algorithm: string | null;
                /** @description Whether the domain that signed is aligned with the author, as in DMARC. */
                aligned: boolean;
                /** @description Details of the result; null if there are none. */
                detail: string | null;
            }[];
            /** @description Null if it was not verified, or the mail has no author. */
            dmarc: {
                /**
                 * @description The result as in RFC 8601, section 2.7.
                 * @enum {unknown}
                 */
                result: "none" | "neutral" | "pass" | "fail" | "softfail" | "policy" | "temperror" | "permerror";
                /** @description The domain of the author. */
                domain: string | null;
                /** @description The policy of the domain. */
                policy: ("none" | "quarantine" | "reject") | null;
                /** @description Details of the result; null if there are none. */
                detail: string | null;
            } | null;
            /** @description Only for a mail with a chain of ARC headers. */
            arc?: {
                /**
                 * @description The result as in RFC 8601, section 2.7.
                 * @enum {unknown}
                 */
                result: "none" | "neutral" | "pass" | "fail" | "softfail" | "policy" | "temperror" | "permerror";
                /** @description The length of the chain. */
                instances: number;
                /** @description Details of the result; null if there are none. */
                detail: string | null;
            };
        };
        /** @description What to change of an account. */
        ChangeAccount: {
            /** @description The name of a configured plan. */
            plan?: string;
            /** @description The account's own limits, on a plan with limits per account. Null for the limits of the plan. */
            limits?: components["schemas"]["AccountLimits"] | null;
        };
        /** @description What to change of a webhook. */
        ChangeWebhook: {
            /** @description The new URL of the endpoint. */
            url?: string;
            /** @description The new list of events to deliver. */
            events?: ("message.received" | "message.deleted" | "inbox.expired" | "inbox.deleted")[];
            /**
             * @description Whether events are delivered. `active` enables a webhook that was disabled for any reason.
             * @enum {string}
             */
            state?: "active" | "disabled";
        };
        /** @description A one-time code in a mail. */
        Code: {
            /** @description The code as a user types it. */
            value: string;
            /** @description The code as written in the mail. */
            text: string;
            /** @description How likely it is a one-time code. */
            confidence: number;
        };
        /** @description An inbox, with its password if it is protected. */
        CreatedInbox: {
            /** @description Never changes and is never reused. */
            id: string;
            /** @description The address. Upper and lower case are the same, and mail to `local+tag@` arrives in the same inbox. */
            address: string;
            /**
             * @description It receives mail.
             * @constant
             */
            state: "active";
            /** @description The lifetime that was last requested. */
            duration: string;
            /** @description Whether reading its mail requires a password. */
            password_protected: boolean;
            /** @description A name to show to people. */
            name: string | null;
            labels: components["schemas"]["InboxLabels"];
            /** @description The environment of the key that created it. */
            environment: string;
            /**
             * Format: date-time
             * @description When it was created.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it expires, with all its mail.
             */
            expires_at: string;
            /** @description The number of messages that it has received, without deleted ones. */
            message_count: number;
            /** @description When the newest message arrived. */
            last_message_at: string | null;
            /** @description Only for a protected inbox, and only in this answer: the value for `Mayfly-Inbox-Password`. */
            password?: string;
        };
        /** @description A new inbox. Every property is optional. */
        CreateInbox: {
            /** @description The lifetime: a whole number and one of `m`, `h`, `d`, `w`, from one minute to the retention of the plan. Default: the shorter of that retention and 24 hours. */
            duration?: string;
            /** @description Whether reading its mail requires a password. The answer then has the password. Default: `false`. */
            password_protected?: boolean;
            /** @description A name to show to people. */
            name?: string | null;
            /** @description Labels to find the inbox by. */
            labels?: components["schemas"]["InboxLabels"];
        };
        /** @description A new token for one inbox. Every property is optional. */
        CreateInboxToken: {
            /**
             * @description `read` for a token that reads the inbox and its mail; `owner` for one that may delete the inbox too. Default: `"read"`.
             * @enum {string}
             */
            access?: "read" | "owner";
            /** @description How long it is valid: a whole number and one of `m`, `h`, `d`, `w`, from one minute to the end of the inbox. Default: until the inbox expires. */
            expires_in?: string;
        };
        /** @description An inbox that was deleted. */
        DeletedInbox: {
            /** @description Never changes and is never reused. */
            id: string;
            /** @description The address. Upper and lower case are the same, and mail to `local+tag@` arrives in the same inbox. */
            address: string;
            /**
             * @description It is permanently deleted.
             * @constant
             */
            state: "deleted";
            /**
             * Format: date-time
             * @description When it was deleted. The same in the answer to a repeat.
             */
            deleted_at: string;
        };
        /** @description A message that was deleted. */
        DeletedMessage: {
            /** @description Never changes and is never reused. */
            id: string;
            /**
             * Format: date-time
             * @description When it was deleted. The same in the answer to a repeat.
             */
            deleted_at: string;
        };
        /** @description An event for a webhook, and the attempts to deliver it. */
        Delivery: {
            /** @description The id of the delivery. */
            id: string;
            /** @description The webhook. */
            webhook_id: string;
            /**
             * @description The event that is delivered.
             * @enum {string}
             */
            event: "message.received" | "message.deleted" | "inbox.expired" | "inbox.deleted" | "sample";
            /** @description The inbox of the event; null for a sample. */
            inbox_id: string | null;
            /** @description The message of the event; null if the event is not about a message. */
            message_id: string | null;
            /** @description The replay that it belongs to; null if it is not part of one. */
            replay_id: string | null;
            /**
             * @description `failed` if the last attempt failed; `abandoned` if there is nothing left to deliver.
             * @enum {string}
             */
            state: "pending" | "succeeded" | "failed" | "abandoned";
            /** @description Why it was abandoned. */
            abandoned_reason: ("inbox-ended" | "message-deleted" | "webhook-disabled" | "webhook-removed" | "replay-cancelled") | null;
            /**
             * Format: date-time
             * @description When it was requested.
             */
            created_at: string;
            /** @description When the next attempt is due; null if there is none. */
            next_attempt_at: string | null;
            /** @description All attempts, in their order. */
            attempts: components["schemas"]["Attempt"][];
        };
        /** @description An inbox after its end. It can be read as long as the log is kept. */
        EndedInbox: {
            /** @description Never changes and is never reused. */
            id: string;
            /** @description The address. Upper and lower case are the same, and mail to `local+tag@` arrives in the same inbox. */
            address: string;
            /** @description How it ended. */
            state: "deleted" | "expired";
            labels: components["schemas"]["InboxLabels"];
            /**
             * Format: date-time
             * @description When it was created.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it ended.
             */
            ended_at: string;
            /** @description The number of messages that it has received, without deleted ones. */
            message_count: number;
        };
        /** @description The SMTP envelope of a mail. */
        Envelope: {
            /** @description The address in MAIL FROM; empty for the null reverse-path. */
            mail_from: string;
            /** @description The RCPT TO address of this copy. */
            rcpt_to: string;
            /** @description The client's EHLO or HELO. */
            helo: string;
            /** @description The client's IP address. */
            remote_address: string;
            /** @description Null for an unencrypted connection. */
            tls: {
                version: string;
                cipher: string;
            } | null;
        };
        /** @description An event of an inbox, without content. */
        Event: {
            /** @description The id of the event. */
            id: string;
            /**
             * @description The type of the event.
             * @enum {string}
             */
            type: "inbox.created" | "inbox.changed" | "token.issued" | "token.revoked" | "message.received" | "message.deleted" | "inbox.expired" | "inbox.deleted";
            /**
             * Format: date-time
             * @description When it happened.
             */
            time: string;
            /** @description The inbox. */
            inbox_id: string;
            /** @description The message; null if the event is about the inbox. */
            message_id: string | null;
            /** @description The key that caused the event; null if no key did. */
            key_id: string | null;
            position: components["schemas"]["Position"];
            /** @description Bytes of a mail's source. */
            size: number | null;
            /** @description SHA-256 of a mail's sealed bytes on the log. */
            digest: string | null;
        };
        /** @description What happened to an inbox: the JSON in `data` of a server-sent event. */
        EventBody: components["schemas"]["MessageReceivedEvent"] | components["schemas"]["MessageDeletedEvent"] | components["schemas"]["InboxExpiredEvent"] | components["schemas"]["InboxDeletedEvent"];
        /** @description A deleted message, as in an event. */
        EventDeletedMessage: {
            /** @description Never changes and is never reused. */
            id: string;
            /** @description The inbox that received it. */
            inbox_id: string;
            /**
             * Format: date-time
             * @description When it was deleted.
             */
            deleted_at: string;
        };
        /** @description An ended inbox, as in an event. */
        EventEndedInbox: {
            /** @description Never changes and is never reused. */
            id: string;
            /** @description How it ended. */
            state: "deleted" | "expired";
            /**
             * Format: date-time
             * @description When it ended.
             */
            ended_at: string;
        };
        /** @description A message, as in an event. */
        EventMessage: {
            /** @description Never changes and is never reused. */
            id: string;
            /** @description The inbox that received it. */
            inbox_id: string;
            /**
             * Format: date-time
             * @description When it was accepted.
             */
            received_at: string;
            /** @description The decoded subject; null if the mail has none. */
            subject: string | null;
            /** @description The first From address, or the envelope's MAIL FROM if there is none. */
            sender: string;
            /** @description The RCPT TO address of this copy. */
            recipient: string;
            from: components["schemas"]["Mailbox"][];
            to: components["schemas"]["Mailbox"][];
            cc: components["schemas"]["Mailbox"][];
            reply_to: components["schemas"]["Mailbox"][];
            /** @description The Date header, in UTC; null if missing or unreadable. */
            date: string | null;
            /** @description The text part; null if the mail has none. */
            text: string | null;
            /** @description The HTML part; null if the mail has none. */
            html: string | null;
            /** @description The visible text of `html`, which the filter `text` also searches; null without `html`. */
            visible_text: string | null;
            /** @description From the HTML's anchors, areas and forms, then the text, in order, without repeats. */
            links: components["schemas"]["Link"][];
            /** @description One-time codes, the most likely first. */
            codes: components["schemas"]["Code"][];
            attachments: components["schemas"]["Attachment"][];
            /** @description All headers in their order, including repeated ones; null if they are left out. */
            headers: components["schemas"]["Header"][] | null;
            envelope: components["schemas"]["Envelope"];
            authentication: components["schemas"]["Authentication"];
            /** @description The size of the source in bytes. */
            size: number;
            /** @description SHA-256 of the source. */
            sha256: string;
            /** @description The path of the source. */
            raw_url: string;
            /** @description Empty if the whole mail could be read. */
            warnings: components["schemas"]["Warning"][];
            /** @description Properties that are null because the event would exceed 256 kB. The message itself has them. */
            truncated?: ("html" | "visible_text" | "text" | "headers")[];
        };
        /** @description An error in a request, and its location: `pointer`, `parameter` or `header`. */
        Fault: {
            /** @description What is wrong there. */
            detail: string;
            /** @description The location in the body (RFC 6901); empty for the whole body. */
            pointer?: string;
            /** @description The parameter of the query or the path. */
            parameter?: string;
            /** @description The header. */
            header?: string;
        };
        /** @description A header of a mail. */
        Header: {
            /** @description The name as written. */
            name: string;
            /** @description The value, decoded and unfolded. */
            value: string;
        };
        /** @description An address that receives mail for a limited time. */
        Inbox: {
            /** @description Never changes and is never reused. */
            id: string;
            /** @description The address. Upper and lower case are the same, and mail to `local+tag@` arrives in the same inbox. */
            address: string;
            /**
             * @description It receives mail.
             * @constant
             */
            state: "active";
            /** @description The lifetime that was last requested. */
            duration: string;
            /** @description Whether reading its mail requires a password. */
            password_protected: boolean;
            /** @description A name to show to people. */
            name: string | null;
            labels: components["schemas"]["InboxLabels"];
            /** @description The environment of the key that created it. */
            environment: string;
            /**
             * Format: date-time
             * @description When it was created.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it expires, with all its mail.
             */
            expires_at: string;
            /** @description The number of messages that it has received, without deleted ones. */
            message_count: number;
            /** @description When the newest message arrived. */
            last_message_at: string | null;
        };
        /** @description The event `inbox.deleted`. */
        InboxDeletedEvent: {
            /**
             * @description The type of the event.
             * @constant
             */
            type: "inbox.deleted";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            data: components["schemas"]["EventEndedInbox"];
        };
        /** @description The event `inbox.expired`. */
        InboxExpiredEvent: {
            /**
             * @description The type of the event.
             * @constant
             */
            type: "inbox.expired";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            data: components["schemas"]["EventEndedInbox"];
        };
        /** @description Pairs of a name of up to 64 characters and a value of up to 128, to find inboxes by. They are kept after the inbox has ended, so do not put personal data in them. */
        InboxLabels: {
            [key: string]: string;
        };
        /** @description A token for one inbox. */
        InboxToken: {
            /** @description The id of the token. */
            id: string;
            /**
             * @description What it may do: `read`, or also delete the inbox.
             * @enum {string}
             */
            access: "read" | "owner";
            /**
             * Format: date-time
             * @description When it expires, at the latest with its inbox.
             */
            expires_at: string;
            /**
             * Format: date-time
             * @description When it was issued.
             */
            created_at: string;
        };
        /** @description A token for one inbox, with its secret. */
        InboxTokenWithSecret: {
            /** @description The id of the token. */
            id: string;
            /**
             * @description What it may do: `read`, or also delete the inbox.
             * @enum {string}
             */
            access: "read" | "owner";
            /**
             * Format: date-time
             * @description When it expires, at the latest with its inbox.
             */
            expires_at: string;
            /**
             * Format: date-time
             * @description When it was issued.
             */
            created_at: string;
            /** @description The bearer token. Only in this answer. */
            token: string;
        };
        /** @description A new API key. */
        IssueKey: {
            /** @description A name to show to people. */
            name: string;
            /** @description The environment that the key belongs to: a lower-case letter, then up to 31 lower-case letters, digits and hyphens. */
            environment: string;
            /** @description The scopes of the key. The scope `operator` can only be given by a key that has it. Default: `["inboxes"]`. */
            scopes?: ("inboxes" | "read" | "audit" | "admin" | "operator")[];
            /** @description The maximum requests per minute, if it is less than the account's. */
            rate_limit?: number | null;
        };
        /** @description An API key, which authenticates requests. Its secret is stored as a digest and shown only once. */
        Key: {
            /** @description The id of the key. It does not change when the secret is rotated. */
            id: string;
            /** @description A name to show to people. */
            name: string;
            /** @description The environment that the key belongs to. */
            environment: string;
            /** @description The scopes of the key. */
            scopes: ("inboxes" | "read" | "audit" | "admin" | "operator")[];
            /** @description The beginning of its secret. */
            prefix: string;
            /**
             * Format: date-time
             * @description When it was issued.
             */
            created_at: string;
            /** @description The approximate time of the last request with it. */
            last_used_at: string | null;
            /** @description Whether it is valid. */
            state: "active" | "revoked";
            /** @description The maximum requests per minute; null if the account's applies. */
            rate_limit: number | null;
            /** @description Its usage since it was issued, a few seconds behind; null if it can not be read at the moment. */
            usage: components["schemas"]["KeyUsage"] | null;
        };
        /** @description The usage of a key. */
        KeyUsage: {
            /** @description Requests that were answered. */
            requests: number;
            /** @description Requests that were answered 429, and mails that were refused. */
            refusals: number;
            /** @description Inboxes that were created. */
            inboxes: number;
            /** @description Mails received; each recipient's copy counts. */
            mails: number;
            /** @description Bytes of those mails. */
            bytes: number;
        };
        /** @description A key with its new secret. */
        KeyWithSecret: {
            /** @description The id of the key. It does not change when the secret is rotated. */
            id: string;
            /** @description A name to show to people. */
            name: string;
            /** @description The environment that the key belongs to. */
            environment: string;
            /** @description The scopes of the key. */
            scopes: ("inboxes" | "read" | "audit" | "admin" | "operator")[];
            /** @description The beginning of its secret. */
            prefix: string;
            /**
             * Format: date-time
             * @description When it was issued.
             */
            created_at: string;
            /** @description The approximate time of the last request with it. */
            last_used_at: string | null;
            /** @description Whether it is valid. */
            state: "active" | "revoked";
            /** @description The maximum requests per minute; null if the account's applies. */
            rate_limit: number | null;
            /** @description Its usage since it was issued, a few seconds behind; null if it can not be read at the moment. */
            usage: components["schemas"]["KeyUsage"] | null;
            /** @description The bearer token. Only in this answer. */
            secret: string;
        };
        /** @description The limits of an account. */
        Limits: {
            /** @description The sustained rate of each key. In addition, a burst of half as many every ten minutes. */
            requests_per_minute: number;
            /** @description The maximum lifetime of an inbox. */
            retention: string;
            /** @description The maximum size of a mail. */
            max_message_bytes: number;
            /** @description The maximum number of messages in one inbox. */
            max_messages: number;
        };
        /** @description A link, form or bare URL in a mail. */
        Link: {
            /** @description Its target URL, http or https. */
            href: string;
            /** @description The visible text; null for a bare URL. */
            text: string | null;
        };
        /** @description A name and address in a header. */
        Mailbox: {
            /** @description The display name. */
            name: string | null;
            /** @description The address, as written. */
            address: string;
        };
        /** @description A received mail, parsed. Parts that it does not have are null or empty. */
        Message: {
            /** @description Never changes and is never reused. */
            id: string;
            /** @description The inbox that received it. */
            inbox_id: string;
            /**
             * Format: date-time
             * @description When it was accepted.
             */
            received_at: string;
            /** @description The decoded subject; null if the mail has none. */
            subject: string | null;
            /** @description The first From address, or the envelope's MAIL FROM if there is none. */
            sender: string;
            /** @description The RCPT TO address of this copy. */
            recipient: string;
            from: components["schemas"]["Mailbox"][];
            to: components["schemas"]["Mailbox"][];
            cc: components["schemas"]["Mailbox"][];
            reply_to: components["schemas"]["Mailbox"][];
            /** @description The Date header, in UTC; null if missing or unreadable. */
            date: string | null;
            /** @description The text part; null if the mail has none. */
            text: string | null;
            /** @description The HTML part; null if the mail has none. */
            html: string | null;
            /** @description The visible text of `html`, which the filter `text` also searches; null without `html`. */
            visible_text: string | null;
            /** @description From the HTML's anchors, areas and forms, then the text, in order, without repeats. */
            links: components["schemas"]["Link"][];
            /** @description One-time codes, the most likely first. */
            codes: components["schemas"]["Code"][];
            attachments: components["schemas"]["Attachment"][];
            /** @description All headers in their order, including repeated ones. */
            headers: components["schemas"]["Header"][];
            envelope: components["schemas"]["Envelope"];
            authentication: components["schemas"]["Authentication"];
            /** @description The size of the source in bytes. */
            size: number;
            /** @description SHA-256 of the source. */
            sha256: string;
            /** @description The path of the source. */
            raw_url: string;
            /** @description Empty if the whole mail could be read. */
            warnings: components["schemas"]["Warning"][];
        };
        /** @description The event `message.deleted`. */
        MessageDeletedEvent: {
            /**
             * @description The type of the event.
             * @constant
             */
            type: "message.deleted";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            data: components["schemas"]["EventDeletedMessage"];
        };
        /** @description The event `message.received`. */
        MessageReceivedEvent: {
            /**
             * @description The type of the event.
             * @constant
             */
            type: "message.received";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            data: components["schemas"]["EventMessage"];
        };
        /** @description A message, with its source unless `raw=false`. */
        MessageWithRaw: {
            /** @description Never changes and is never reused. */
            id: string;
            /** @description The inbox that received it. */
            inbox_id: string;
            /**
             * Format: date-time
             * @description When it was accepted.
             */
            received_at: string;
            /** @description The decoded subject; null if the mail has none. */
            subject: string | null;
            /** @description The first From address, or the envelope's MAIL FROM if there is none. */
            sender: string;
            /** @description The RCPT TO address of this copy. */
            recipient: string;
            from: components["schemas"]["Mailbox"][];
            to: components["schemas"]["Mailbox"][];
            cc: components["schemas"]["Mailbox"][];
            reply_to: components["schemas"]["Mailbox"][];
            /** @description The Date header, in UTC; null if missing or unreadable. */
            date: string | null;
            /** @description The text part; null if the mail has none. */
            text: string | null;
            /** @description The HTML part; null if the mail has none. */
            html: string | null;
            /** @description The visible text of `html`, which the filter `text` also searches; null without `html`. */
            visible_text: string | null;
            /** @description From the HTML's anchors, areas and forms, then the text, in order, without repeats. */
            links: components["schemas"]["Link"][];
            /** @description One-time codes, the most likely first. */
            codes: components["schemas"]["Code"][];
            attachments: components["schemas"]["Attachment"][];
            /** @description All headers in their order, including repeated ones. */
            headers: components["schemas"]["Header"][];
            envelope: components["schemas"]["Envelope"];
            authentication: components["schemas"]["Authentication"];
            /** @description The size of the source in bytes. */
            size: number;
            /** @description SHA-256 of the source. */
            sha256: string;
            /** @description The path of the source. */
            raw_url: string;
            /** @description Empty if the whole mail could be read. */
            warnings: components["schemas"]["Warning"][];
            /** @description The whole source; absent with `raw=false`. */
            raw?: string;
            /** @description `base64` if the source is not valid UTF-8. Absent with `raw=false`. */
            raw_encoding?: "utf-8" | "base64";
        };
        /** @description A message that a wait examined, and why it did not match. */
        NearMiss: {
            /** @description The id of the message. */
            id: string;
            /** @description The id of its inbox. */
            inbox_id: string;
            /** @description Its subject. */
            subject: string | null;
            /**
             * Format: date-time
             * @description When it was accepted.
             */
            received_at: string;
            /** @description A sentence for each filter that it does not match. */
            mismatches: string[];
        };
        /** @description A new account. */
        OpenAccount: {
            /** @description A name to show to people. */
            name: string;
            /** @description The name of a configured plan. */
            plan: string;
            /** @description The account's own limits, on a plan with limits per account. */
            limits?: components["schemas"]["AccountLimits"] | null;
        };
        /** @description A position on the event log. */
        Position: {
            /**
             * @description Without the prefix that an installation may have configured.
             * @constant
             */
            topic: "inbox-events";
            /** @description The partition of the inbox. */
            partition: number;
            /** @description The offset in the partition. */
            offset: number;
        };
        /** @description An error (RFC 9457). */
        Problem: {
            /**
             * Format: uri
             * @description The URL of a page about the problem.
             */
            type: string;
            /** @description The same for every problem with this `code`. */
            title: string;
            /** @description The status of the answer. */
            status: number;
            /** @description What is wrong with this request. */
            detail: string;
            /**
             * @description The kind of the problem, for programs.
             * @enum {string}
             */
            code: "invalid-request" | "malformed-json" | "missing-api-key" | "invalid-api-key" | "revoked-api-key" | "sign-in-failed" | "not-signed-in" | "plan-lacks-api-access" | "missing-scope" | "untrusted-origin" | "inbox-password-required" | "inbox-password-invalid" | "not-found" | "no-matching-message" | "method-not-allowed" | "not-acceptable" | "idempotency-key-in-use" | "inbox-deleted" | "inbox-expired" | "message-deleted" | "body-too-large" | "unsupported-media-type" | "idempotency-key-reused" | "html-too-complex" | "rate-limited" | "too-many-password-attempts" | "internal-error" | "catching-up" | "log-unavailable" | "read-model-unavailable" | "busy" | "too-many-streams" | "too-many-waits" | "shutting-down";
            /** @description What to do. */
            fix: string;
            /** @description The value of the header `X-Request-Id`. */
            request_id: string;
            /** @description With `invalid-request`: all errors in the request. */
            errors?: components["schemas"]["Fault"][];
            /**
             * Format: date-time
             * @description When the inbox ended.
             */
            ended_at?: string;
            /** @description The key that deleted the inbox; null if it expired. */
            ended_by?: string | null;
            /**
             * Format: date-time
             * @description When the message was deleted.
             */
            deleted_at?: string;
            /** @description With `no-matching-message`: the number of messages that were examined. */
            examined?: number;
            /** @description With `no-matching-message`: the messages nearest to a match. */
            nearest?: components["schemas"]["NearMiss"][];
            /** @description With `no-matching-message`: the position after the last message that was examined. */
            cursor?: string;
        };
        /** @description Milliseconds: median, 95th and 99th percentile. */
        Quantiles: {
            p50: number;
            p95: number;
            p99: number;
        };
        /** @description Milliseconds: median, 95th and 99th percentile, maximum. */
        QuantilesAndMax: {
            p50: number;
            p95: number;
            p99: number;
            max: number;
        };
        /** @description A new webhook. */
        RegisterWebhook: {
            /** @description The URL of the endpoint: http or https, without user name, password or fragment. */
            url: string;
            /** @description The events to deliver. Default: `["message.received"]`. */
            events?: ("message.received" | "message.deleted" | "inbox.expired" | "inbox.deleted")[];
            /** @description The first event to deliver: `now`, `beginning` for all existing events, or a time (RFC 3339) for the events since then. Default: `"now"`. */
            start_from?: string;
        };
        /** @description Events that are delivered to a webhook again. */
        Replay: {
            /** @description The id of the replay. */
            id: string;
            /** @description The webhook. */
            webhook_id: string;
            /**
             * @description `completed` once all deliveries are requested and finished.
             * @enum {string}
             */
            state: "running" | "completed" | "cancelled";
            /** @description Deliveries requested so far. */
            requested: number;
            /** @description Deliveries that are finished: delivered, failed without another attempt, or abandoned. */
            done: number;
            /**
             * Format: date-time
             * @description When it was requested.
             */
            created_at: string;
        };
        /** @description The events of single deliveries. */
        ReplayOfDeliveries: {
            /** @description Deliveries of the webhook, instead of a time range. Samples are skipped. */
            delivery_ids: string[];
            /** @description Only events whose delivery has not succeeded: its last attempt failed, it waits for another attempt after a failed one, or it was abandoned because the webhook was disabled or the replay was cancelled. Default: `false`. */
            only_failed?: boolean;
        };
        /** @description All events in a time range. */
        ReplayOfRange: {
            /** @description The start of the range (RFC 3339). Requires `to`. */
            from: string;
            /** @description The end of the range, exclusive; at most now. */
            to: string;
            /** @description Only events whose delivery has not succeeded: its last attempt failed, it waits for another attempt after a failed one, or it was abandoned because the webhook was disabled or the replay was cancelled. Default: `false`. */
            only_failed?: boolean;
        };
        /** @description Which events to send again. */
        RequestReplay: components["schemas"]["ReplayOfRange"] | components["schemas"]["ReplayOfDeliveries"];
        /** @description A token that was revoked. */
        RevokedInboxToken: {
            /** @description The id of the token. */
            id: string;
            /**
             * Format: date-time
             * @description When it was revoked. The same in the answer to a repeat.
             */
            revoked_at: string;
        };
        /** @description How to replace the secret of a key. */
        RotateKey: {
            /** @description How long the former secret stays valid, at most 7 days: `0`, or a whole number and one of `s`, `m`, `h`, `d`, `w`. Default: `"0"`. */
            grace?: string;
        };
        /** @description How to replace the secret of a webhook. */
        RotateWebhookSecret: {
            /** @description How long requests are also signed with the former secret, at most 7 days: `0`, or a whole number and one of `s`, `m`, `h`, `d`, `w`. Default: `"24h"`. */
            grace?: string;
        };
        /** @description What to change of an inbox. Every property is optional. */
        UpdateInbox: {
            /** @description The lifetime, counted from the creation: a whole number and one of `m`, `h`, `d`, `w`, from one minute to the retention of the plan. */
            duration?: string;
            /** @description A name to show to people; null removes it. */
            name?: string | null;
            /** @description Replaces all labels. */
            labels?: components["schemas"]["InboxLabels"];
        };
        /** @description A summary of a load run. */
        UsageReport: {
            /** @description Everything that happened before this time is in the report, except for requests, refusals, reads and latencies that a process could not append to the log immediately. Null if counting is more than a minute behind, or the server has just started. */
            counted_up_to: string | null;
            /** @description Requests that were answered. */
            requests: number;
            /** @description Requests that were answered 429, and mails that were refused. */
            refusals: number;
            /** @description Inboxes that were created. */
            inboxes: number;
            /** @description Mails received; each recipient's copy counts. */
            mails: number;
            /** @description Bytes of those mails. */
            bytes: number;
            /** @description Mails beyond the first of those with the same Message-ID in the same inbox. */
            duplicates: number;
            /** @description Messages that the API has answered with at least once. */
            read: number;
            /** @description Inboxes that were created and got no mail. */
            inboxes_without_mail: number;
            /** @description From the last byte of a mail until it is durable, just before the sender gets 250. Null if no mail was accepted. */
            accept_ms: components["schemas"]["QuantilesAndMax"] | null;
            /** @description From the acceptance of a mail until it can be read over the API. Null if there was nothing to measure. */
            visible_ms: components["schemas"]["Quantiles"] | null;
            /** @description From the acceptance of a mail to the first answer that contains it. Null if there was nothing to measure. */
            first_read_ms: components["schemas"]["Quantiles"] | null;
            /** @description When the first mail arrived. */
            first_mail_at: string | null;
            /** @description When the last mail arrived. */
            last_mail_at: string | null;
            /** @description Average rate from the first mail to the last. Null for fewer than two mails, or if all arrived at the same time. */
            mails_per_second: number | null;
            /** @description Mails over time, from the first to the last, in buckets of equal length; buckets without mail are included. The length is at least a second and depends on how long the run took. */
            timeline: components["schemas"]["UsageTimelineBucket"][];
        };
        /** @description The usage in an interval. */
        UsageRow: {
            /**
             * Format: date-time
             * @description The start of the interval, or of the span of the query if that is later.
             */
            from: string;
            /**
             * Format: date-time
             * @description The end of the interval, or of the span of the query if that is earlier.
             */
            to: string;
            /** @description The key, environment or label value of the row; null without one. */
            group: string | null;
            /** @description Requests that were answered. */
            requests: number;
            /** @description Requests that were answered 429, and mails that were refused. */
            refusals: number;
            /** @description Inboxes that were created. */
            inboxes: number;
            /** @description Mails received; each recipient's copy counts. */
            mails: number;
            /** @description Bytes of those mails. */
            bytes: number;
            /** @description From a request to its answer, without waits and streams. Null if there was nothing to measure. */
            request_ms: components["schemas"]["Quantiles"] | null;
            /** @description From the acceptance of a mail until it can be read over the API. Null if there was nothing to measure. */
            visible_ms: components["schemas"]["Quantiles"] | null;
        };
        /** @description The mails of a part of a load run. */
        UsageTimelineBucket: {
            /**
             * Format: date-time
             * @description When the bucket begins.
             */
            from: string;
            /**
             * Format: date-time
             * @description When it ends, exclusive.
             */
            to: string;
            /** @description Mails received; each recipient's copy counts. */
            mails: number;
            /** @description Bytes of those mails. */
            bytes: number;
        };
        /** @description The build and engine of this server. */
        Version: {
            version: string;
            /** @description The git commit that it was built from; null if it is unknown. */
            commit: string | null;
            engine: "embedded" | "distributed";
        };
        /** @description A part of a mail that could not be read. */
        Warning: {
            /** @description The kind of the warning, for programs. */
            code: string;
            /** @description The warning, for people. */
            detail: string;
        };
        /** @description An endpoint to which the events of an inbox or of an environment are delivered. Its signing secret is shown only once. */
        Webhook: {
            /** @description The id of the webhook. It never changes. */
            id: string;
            /** @description The URL of the endpoint. */
            url: string;
            /** @description The inbox whose events are delivered; null for all inboxes of the environment. */
            inbox_id: string | null;
            /** @description The events that are delivered. */
            events: ("message.received" | "message.deleted" | "inbox.expired" | "inbox.deleted")[];
            /** @description Whether events are delivered. */
            state: "active" | "disabled";
            /**
             * Format: date-time
             * @description When it was registered.
             */
            created_at: string;
            /** @description Why it is disabled: `by-request`; `gone` if its endpoint answered 410; `failing` after 5 days in which every attempt failed. Null if it is active. */
            disabled_reason: ("by-request" | "gone" | "failing") | null;
        };
        /** @description A webhook with its new secret. */
        WebhookWithSecret: {
            /** @description The id of the webhook. It never changes. */
            id: string;
            /** @description The URL of the endpoint. */
            url: string;
            /** @description The inbox whose events are delivered; null for all inboxes of the environment. */
            inbox_id: string | null;
            /** @description The events that are delivered. */
            events: ("message.received" | "message.deleted" | "inbox.expired" | "inbox.deleted")[];
            /** @description Whether events are delivered. */
            state: "active" | "disabled";
            /**
             * Format: date-time
             * @description When it was registered.
             */
            created_at: string;
            /** @description Why it is disabled: `by-request`; `gone` if its endpoint answered 410; `failing` after 5 days in which every attempt failed. Null if it is active. */
            disabled_reason: ("by-request" | "gone" | "failing") | null;
            /** @description The signing secret in the form of Standard Webhooks: `whsec_` and base64. Only in this answer. */
            secret: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    listInboxes: {
        parameters: {
            query?: {
                /** @description The state of the inboxes. */
                state?: "active" | "deleted" | "expired";
                /** @description A label `<name>:<value>` that they must have. Repeat to require several labels. */
                label?: string[];
                /** @description The maximum number of items on a page. */
                limit?: number;
                /** @description Oldest or newest first. */
                order?: "asc" | "desc";
                /** @description The position to continue from, as in `Link`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
    waitForInboxMessage: {
        parameters: {
            query?: {
                /** @description Seconds to wait for a message. */
                timeout?: number;
                /** @description Text that the subject must contain, in upper or lower case. */
                subject?: string;
                /** @description Text that the sender's address or name must contain, in upper or lower case. */
                sender?: string;
                /** @description Text that the recipient must contain, in upper or lower case. */
                recipient?: string;
                /** @description Text that the text part, or the visible text of the HTML, must contain, in upper or lower case. */
                text?: string;
                /** @description Text that an address or a name in `to` must contain, in upper or lower case. */
                to?: string;
                /** @description A header `<name>:<text>`: a header of that name must contain the text, in upper or lower case. Without a text, the message must have the header. Repeat to require several headers. */
                header?: string[];
                /** @description The earliest `received_at` (RFC 3339). */
                since?: string;
                /** @description The end of the time in which it was received, exclusive (RFC 3339). */
                until?: string;
                /** @description `true`: it must have a one-time code. `false`: it must not. */
                has_code?: boolean;
                /** @description `true`: it must have a link. `false`: it must not. */
                has_link?: boolean;
                /** @description Oldest or newest first. */
                order?: "asc" | "desc";
                /** @description The position to continue from, as in `Link` or `Mayfly-Cursor`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
    listInboxMessages: {
        parameters: {
            query?: {
                /** @description The maximum number of items on a page. */
                limit?: number;
                /** @description Text that the subject must contain, in upper or lower case. */
                subject?: string;
                /** @description Text that the sender's address or name must contain, in upper or lower case. */
                sender?: string;
                /** @description Text that the recipient must contain, in upper or lower case. */
                recipient?: string;
                /** @description Text that the text part, or the visible text of the HTML, must contain, in upper or lower case. */
                text?: string;
                /** @description Text that an address or a name in `to` must contain, in upper or lower case. */
                to?: string;
                /** @description A header `<name>:<text>`: a header of that name must contain the text, in upper or lower case. Without a text, the message must have the header. Repeat to require several headers. */
                header?: string[];
                /** @description The earliest `received_at` (RFC 3339). */
                since?: string;
                /** @description The end of the time in which it was received, exclusive (RFC 3339). */
                until?: string;
                /** @description `true`: it must have a one-time code. `false`: it must not. */
                has_code?: boolean;
                /** @description `true`: it must have a link. `false`: it must not. */
                has_link?: boolean;
                /** @description Oldest or newest first. */
                order?: "asc" | "desc";
                /** @description The position to continue from, as in `Link` or `Mayfly-Cursor`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
    getInboxMessage: {
        parameters: {
            query?: {
                /** @description Whether the answer includes the source. */
                raw?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
    waitForMessage: {
        parameters: {
            query?: {
                /** @description A label `<name>:<value>` that the inbox must have. Repeat to require several labels. */
                label?: string[];
                /** @description Text that the subject must contain, in upper or lower case. */
                subject?: string;
                /** @description Text that the sender's address or name must contain, in upper or lower case. */
                sender?: string;
                /** @description Text that the recipient must contain, in upper or lower case. */
                recipient?: string;
                /** @description Text that the text part, or the visible text of the HTML, must contain, in upper or lower case. */
                text?: string;
                /** @description Text that an address or a name in `to` must contain, in upper or lower case. */
                to?: string;
                /** @description A header `<name>:<text>`: a header of that name must contain the text, in upper or lower case. Without a text, the message must have the header. Repeat to require several headers. */
                header?: string[];
                /** @description The earliest `received_at` (RFC 3339). */
                since?: string;
                /** @description The end of the time in which it was received, exclusive (RFC 3339). */
                until?: string;
                /** @description `true`: it must have a one-time code. `false`: it must not. */
                has_code?: boolean;
                /** @description `true`: it must have a link. `false`: it must not. */
                has_link?: boolean;
                /** @description Oldest or newest first. */
                order?: "asc" | "desc";
                /** @description The position to continue from, as in `Link` or `Mayfly-Cursor`. */
                cursor?: string;
                /** @description Seconds to wait for a message. */
                timeout?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
    listMessages: {
        parameters: {
            query?: {
                /** @description A label `<name>:<value>` that the inbox must have. Repeat to require several labels. */
                label?: string[];
                /** @description Text that the subject must contain, in upper or lower case. */
                subject?: string;
                /** @description Text that the sender's address or name must contain, in upper or lower case. */
                sender?: string;
                /** @description Text that the recipient must contain, in upper or lower case. */
                recipient?: string;
                /** @description Text that the text part, or the visible text of the HTML, must contain, in upper or lower case. */
                text?: string;
                /** @description Text that an address or a name in `to` must contain, in upper or lower case. */
                to?: string;
                /** @description A header `<name>:<text>`: a header of that name must contain the text, in upper or lower case. Without a text, the message must have the header. Repeat to require several headers. */
                header?: string[];
                /** @description The earliest `received_at` (RFC 3339). */
                since?: string;
                /** @description The end of the time in which it was received, exclusive (RFC 3339). */
                until?: string;
                /** @description `true`: it must have a one-time code. `false`: it must not. */
                has_code?: boolean;
                /** @description `true`: it must have a link. `false`: it must not. */
                has_link?: boolean;
                /** @description Oldest or newest first. */
                order?: "asc" | "desc";
                /** @description The position to continue from, as in `Link` or `Mayfly-Cursor`. */
                cursor?: string;
                /** @description The maximum number of items on a page. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
    listAccounts: {
        parameters: {
            query?: {
                /** @description The maximum number of items on a page. */
                limit?: number;
                /** @description Oldest or newest first. */
                order?: "asc" | "desc";
                /** @description The position to continue from, as in `Link`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
    listKeys: {
        parameters: {
            query?: {
                /** @description The maximum number of items on a page. */
                limit?: number;
                /** @description Oldest or newest first. */
                order?: "asc" | "desc";
                /** @description The position to continue from, as in `Link`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
    listInboxHistory: {
        parameters: {
            query?: {
                /** @description The maximum number of items on a page. */
                limit?: number;
                /** @description Oldest or newest first. */
                order?: "asc" | "desc";
                /** @description The position to continue from, as in `Link` or `Mayfly-Cursor`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
    streamInboxEvents: {
        parameters: {
            query?: {
                /** @description The position to start from, a `Mayfly-Cursor`. Default: now. `Last-Event-ID` takes precedence. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
    streamEvents: {
        parameters: {
            query?: {
                /** @description A label `<name>:<value>` that the inbox must have. Repeat to require several labels. */
                label?: string[];
                /** @description The position to start from, a `Mayfly-Cursor`. Default: now. `Last-Event-ID` takes precedence. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
    listInboxWebhooks: {
        parameters: {
            query?: {
                /** @description The maximum number of items on a page. */
                limit?: number;
                /** @description Oldest or newest first. */
                order?: "asc" | "desc";
                /** @description The position to continue from, as in `Link`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
    listWebhooks: {
        parameters: {
            query?: {
                /** @description The maximum number of items on a page. */
                limit?: number;
                /** @description Oldest or newest first. */
                order?: "asc" | "desc";
                /** @description The position to continue from, as in `Link`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
    listDeliveries: {
        parameters: {
            query?: {
                /** @description The maximum number of items on a page. */
                limit?: number;
                /** @description Oldest or newest first. */
                order?: "asc" | "desc";
                /** @description The position to continue from, as in `Link`. */
                cursor?: string;
                /** @description Only deliveries in this state. */
                state?: "pending" | "succeeded" | "failed" | "abandoned";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
    listReplays: {
        parameters: {
            query?: {
                /** @description The maximum number of items on a page. */
                limit?: number;
                /** @description Oldest or newest first. */
                order?: "asc" | "desc";
                /** @description The position to continue from, as in `Link`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
    readUsage: {
        parameters: {
            query?: {
                /** @description The length of the intervals, which are in UTC. */
                interval?: "second" | "minute" | "hour" | "day";
                /** @description What to group the rows of an interval by: `key`, `environment`, `label.<name>`, or `none`. */
                group_by?: string;
                /** @description Only usage with the label `<name>:<value>`. Repeat to require several labels. */
                label?: string[];
                /** @description The start of the span (RFC 3339). */
                from?: string;
                /** @description The end of the span, exclusive. Default: now. */
                to?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
    reportUsage: {
        parameters: {
            query: {
                /** @description Only usage with the label `<name>:<value>`. Repeat to require several labels. */
                label: string[];
                /** @description The start of the span (RFC 3339). */
                from?: string;
                /** @description The end of the span, exclusive. Default: now. */
                to?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
    exportUsage: {
        parameters: {
            query?: {
                /** @description The format of the file. In CSV, `labels` is a JSON array and missing values are empty. */
                format?: "parquet" | "ndjson" | "csv";
                /** @description The rows of the file: figures by key and minute (`usage`, or `usage_minute`), hour or day, by route or by webhook; or each event of one kind. docs/analytics.md lists the columns. */
                table?: "usage" | "usage_minute" | "usage_hour" | "usage_day" | "routes_minute" | "webhooks_minute" | "requests" | "inbox_events" | "mail_events" | "webhook_events";
                /** @description The start of the span (RFC 3339). */
                from?: string;
                /** @description The end of the span, exclusive. Default: now. */
                to?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
}
