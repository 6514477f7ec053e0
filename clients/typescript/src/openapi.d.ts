// Written by `npm run generate`: the schemas of the OpenAPI document, and the query of each operation.

export interface components {
	schemas: {
		Account: {
			id: string;
			name: string;
			plan: string;
			limits: components["schemas"]["Limits"] | null;
			environments: string[];
			created_at: string;
		};
		AccountLimits: {
			requests_per_minute?: number;
			account_requests_per_minute?: number;
			retention?: string;
			max_messages?: number;
			max_inboxes?: number;
			max_stored_bytes?: number;
		};
		AccountWithKey: {
			id: string;
			name: string;
			plan: string;
			limits: components["schemas"]["Limits"] | null;
			environments: string[];
			created_at: string;
			key: components["schemas"]["KeyWithSecret"] | null;
		};
		/** An attachment of the mail. */
		AttachContent: {
			/** The file name. */
			filename: string;
			/** The media type, without parameters; not multipart. */
			content_type: string;
			/** The content in base64. */
			content: string;
		};
		/** An attachment of a mail. */
		Attachment: {
			/** Its number in the path of its content, from 0. */
			index: number;
			/** The file name that the sender declared. */
			filename: string | null;
			/** The media type that the sender declared. */
			content_type: string;
			/** The decoded size in bytes. */
			size: number;
			/** The id that `cid:` links in the HTML refer to. */
			content_id: string | null;
			/** Whether it is to be shown within the mail. */
			inline: boolean;
			/** SHA-256 of the decoded bytes. */
			sha256: string;
		};
		Attempt: {
			time: string;
			status: number | null;
			latency_ms: number;
			answer: string | null;
			error: string | null;
		};
		Authentication: {
			spf: {
				result: "none" | "neutral" | "pass" | "fail" | "softfail" | "policy" | "temperror" | "permerror";
				domain: string | null;
				detail: string | null;
			} | null;
			dkim: {
				result: "none" | "neutral" | "pass" | "fail" | "softfail" | "policy" | "temperror" | "permerror";
				domain: string | null;
				selector: string | null;
				algorithm: string | null;
				aligned: boolean;
				detail: string | null;
			}[];
			dmarc: {
				result: "none" | "neutral" | "pass" | "fail" | "softfail" | "policy" | "temperror" | "permerror";
				domain: string | null;
				policy: ("none" | "quarantine" | "reject") | null;
				detail: string | null;
			} | null;
			arc?: {
				result: "none" | "neutral" | "pass" | "fail" | "softfail" | "policy" | "temperror" | "permerror";
				instances: number;
				detail: string | null;
			};
		};
		ChangeAccount: {
			plan?: string;
			limits?: components["schemas"]["AccountLimits"] | null;
		};
		/** What to change of a domain. */
		ChangeDomain: {
			/** Whether the domain includes all its subdomains. The records are then checked again. */
			subdomains?: boolean;
			/** What becomes of mail to an address without an inbox. */
			catch_all?: components["schemas"]["DomainCatchAll"];
		};
		/** What to change of a webhook. */
		ChangeWebhook: {
			/** The new URL of the endpoint. */
			url?: string;
			/** The new list of events to deliver. */
			events?: ("message.received" | "message.deleted" | "inbox.expired" | "inbox.deleted" | "domain.verified" | "domain.lapsed")[];
			/** Whether events are delivered. `active` enables a webhook that was disabled for any reason. */
			state?: "active" | "disabled";
		};
		/** A link of a mail, and what its host answered. */
		CheckedLink: {
			/** As in `links` of the message. */
			href: string;
			/** The HTTP status, after redirects; null if there was no answer. */
			status: number | null;
			/** Why there is no status, or why it is that of a redirect; null otherwise. Without addresses. */
			error: string | null;
		};
		/** A mail client that does not fully support a feature. */
		ClientSupport: {
			/** The mail client and its platform, in its newest version that was tested. */
			name: string;
			/** How far it supports the feature. */
			support: "none" | "partial";
			/** What it does not support, or does instead, in Markdown. */
			notes: string[];
		};
		/** A one-time code in a mail. */
		Code: {
			/** The code as a user types it. */
			value: string;
			/** The code as written in the mail. */
			text: string;
			/** How likely it is a one-time code. */
			confidence: number;
		};
		/** An inbox, with its password if it is protected. */
		CreatedInbox: {
			/** Never changes and is never reused. */
			id: string;
			/** The address. Upper and lower case are the same, and mail to `local+tag@` arrives in the same inbox. It is made up, except that of an inbox that mail to its address has made. */
			address: string;
			/**
			 * It receives mail.
			 * @constant
			 */
			state: "active";
			/** The lifetime that was last requested. */
			duration: string;
			/** Whether reading its mail requires a password. */
			password_protected: boolean;
			/** A name to show to people. */
			name: string | null;
			labels: components["schemas"]["InboxLabels"];
			/** The environment of the key that created it. */
			environment: string;
			/** When it was created. */
			created_at: string;
			/** When it expires, with all its mail. */
			expires_at: string;
			/** The number of messages that it has received, without deleted ones. */
			message_count: number;
			/** When the newest message arrived. */
			last_message_at: string | null;
			/** Only for a protected inbox, and only in this answer: the value for `Mayfly-Inbox-Password`. */
			password?: string;
		};
		/** A new domain: one of your own, by its `name`, or a hosted one. */
		CreateDomain: components["schemas"]["OwnDomain"] | components["schemas"]["HostedDomain"];
		/** A new inbox. Every property is optional. */
		CreateInbox: {
			/** Its address, such as `support@staging.example.com`, in one of your domains. Default: a generated address. */
			address?: string;
			/** Instead of `address`: its local part. Requires `domain`. */
			local_part?: string;
			/** Instead of `address`: its domain. Requires `local_part`. */
			domain?: string;
			/** The lifetime: a whole number and one of `m`, `h`, `d`, `w`, from one minute to the retention of the plan. Default: the shorter of that retention and 24 hours. */
			duration?: string;
			/** Whether reading its mail requires a password. The answer then has the password. Default: `false`. */
			password_protected?: boolean;
			/** A name to show to people. */
			name?: string | null;
			/** Labels to find the inbox by. */
			labels?: components["schemas"]["InboxLabels"];
		};
		/** New inboxes. All have the same properties, and `name` gets a number: `user-1`, `user-2` and so on. */
		CreateInboxes: {
			/** The number of inboxes. */
			count: number;
			/** The lifetime: a whole number and one of `m`, `h`, `d`, `w`, from one minute to the retention of the plan. Default: the shorter of that retention and 24 hours. */
			duration?: string;
			/** Whether reading its mail requires a password. The answer then has the password. Default: `false`. */
			password_protected?: boolean;
			/** A name to show to people. */
			name?: string | null;
			/** Labels to find the inbox by. */
			labels?: components["schemas"]["InboxLabels"];
		};
		/** A new token for one inbox. Every property is optional. */
		CreateInboxToken: {
			/** `read` for a token that reads the inbox and its mail; `owner` for one that may delete the inbox too. Default: `"read"`. */
			access?: "read" | "owner";
			/** How long it is valid: a whole number and one of `m`, `h`, `d`, `w`, from one minute to the end of the inbox. Default: until the inbox expires. */
			expires_in?: string;
		};
		/** An inbox that was deleted. */
		DeletedInbox: {
			/** Never changes and is never reused. */
			id: string;
			/** The address. Upper and lower case are the same, and mail to `local+tag@` arrives in the same inbox. It is made up, except that of an inbox that mail to its address has made. */
			address: string;
			/**
			 * It is permanently deleted.
			 * @constant
			 */
			state: "deleted";
			/** When it was deleted. The same in the answer to a repeat. */
			deleted_at: string;
		};
		/** What was deleted. */
		DeletedInboxes: {
			/** The number of inboxes that this request has deleted. */
			deleted: number;
			/** The number of inboxes that are left to delete. Repeat the request until it is 0. */
			remaining: number;
		};
		/** A message that was deleted. */
		DeletedMessage: {
			/** Never changes and is never reused. */
			id: string;
			/** When it was deleted. The same in the answer to a repeat. */
			deleted_at: string;
		};
		/** Which inboxes to delete. */
		DeleteInboxes: components["schemas"]["DeleteInboxesById"] | components["schemas"]["DeleteInboxesByLabel"];
		/** Single inboxes. */
		DeleteInboxesById: {
			/** The ids of the inboxes. */
			ids: string[];
		};
		/** All inboxes with a label. */
		DeleteInboxesByLabel: {
			/** A label `<name>:<value>`. */
			label: string;
		};
		Delivery: {
			id: string;
			webhook_id: string;
			event: "message.received" | "message.deleted" | "inbox.expired" | "inbox.deleted" | "domain.verified" | "domain.lapsed" | "sample";
			inbox_id: string | null;
			message_id: string | null;
			domain_id: string | null;
			replay_id: string | null;
			state: "pending" | "succeeded" | "failed" | "abandoned";
			abandoned_reason: ("inbox-ended" | "message-deleted" | "webhook-disabled" | "webhook-removed" | "replay-cancelled") | null;
			created_at: string;
			next_attempt_at: string | null;
			attempts: components["schemas"]["Attempt"][];
		};
		/** A domain whose mail the account receives. */
		Domain: {
			/** The id of the domain. It never changes. */
			id: string;
			/** The name, in Unicode. */
			name: string;
			/** The environment whose inboxes receive the mail. */
			environment: string;
			/** `pending` until all records are found; `verified`; `failed` if they are not found within 72 hours, or if another account has proved the domain since; `lapsed` if they are gone for two days. */
			state: "pending" | "verified" | "failed" | "lapsed";
			/** Whether it is a name below the mail domain of Mayfly. */
			hosted: boolean;
			/** Whether it includes all its subdomains. */
			subdomains: boolean;
			/** Whether all records were found, but another account has the domain. It is verified at the first check that does not find the TXT record of that account. */
			name_taken: boolean;
			/** The DNS records that it must have; none if it is hosted. */
			records: components["schemas"]["DomainRecord"][];
			catch_all: components["schemas"]["DomainCatchAll"];
			/** When it was registered. */
			created_at: string;
			/** Since when it is verified, without interruption; null if it never was. */
			verified_at: string | null;
			/** When name servers last gave a clear answer about its records; null if they never did. */
			checked_at: string | null;
		};
		/** What becomes of mail to an address of the domain without an inbox. */
		DomainCatchAll: {
			/** `reject` refuses the mail, `create` makes an inbox for the address, `deliver` delivers it to one inbox. */
			action: "reject" | "create" | "deliver";
			/** The inbox of `deliver`. */
			inbox_id?: string;
			/** The lifetime of the inboxes that `create` makes: a whole number and one of `m`, `h`, `d`, `w`. Default: that of a new inbox. */
			duration?: string;
			labels?: components["schemas"]["InboxLabels"];
		};
		/** The event `domain.lapsed`. */
		DomainLapsedEvent: {
			/**
			 * The type of the event.
			 * @constant
			 */
			type: "domain.lapsed";
			/** When it happened. */
			timestamp: string;
			data: components["schemas"]["EventDomain"];
		};
		/** A DNS record that the domain must have. */
		DomainRecord: {
			/** The type of the record. */
			type: "TXT" | "MX";
			/** Its full name. */
			name: string;
			/** Its name in the zone of the registrable domain, as most DNS providers ask for it; `@` for the zone itself. */
			zone_name: string;
			/** Its value. */
			value: string;
			/** The preference of an MX record; null for a TXT record. */
			priority: number | null;
			/** The result of the last check. `invalid`: there are other values only, or other MX records that senders try first. */
			status: "missing" | "invalid" | "valid";
			/** The values found in DNS, at most 10; MX as `10 mx.example.com`. */
			found: string[];
		};
		/** The event `domain.verified`. */
		DomainVerifiedEvent: {
			/**
			 * The type of the event.
			 * @constant
			 */
			type: "domain.verified";
			/** When it happened. */
			timestamp: string;
			data: components["schemas"]["EventDomain"];
		};
		/** An inbox after its end. It can be read as long as the log is kept. */
		EndedInbox: {
			/** Never changes and is never reused. */
			id: string;
			/** The address. Upper and lower case are the same, and mail to `local+tag@` arrives in the same inbox. It is made up, except that of an inbox that mail to its address has made. */
			address: string;
			/** How it ended. */
			state: "deleted" | "expired";
			labels: components["schemas"]["InboxLabels"];
			/** When it was created. */
			created_at: string;
			/** When it ended. */
			ended_at: string;
			/** The number of messages that it has received, without deleted ones. */
			message_count: number;
		};
		/** The SMTP envelope of a mail. */
		Envelope: {
			/** The address in MAIL FROM; empty for the null reverse-path. */
			mail_from: string;
			/** The RCPT TO address of this copy. */
			rcpt_to: string;
			/** The client's EHLO or HELO. */
			helo: string;
			/** The client's IP address. */
			remote_address: string;
			/** Null for an unencrypted connection. */
			tls: {
				version: string;
				cipher: string;
			} | null;
		};
		ErasedMail: {
			kind: "erased";
			recipient: string;
			id: string;
			line: number;
			sent_at: string | null;
			inbox_id: string;
			state: "deleted" | "expired";
			ended_at: string;
		};
		/** An event of an inbox, without content. */
		Event: {
			/** The id of the event. */
			id: string;
			/** The type of the event. */
			type: "inbox.created" | "inbox.changed" | "token.issued" | "token.revoked" | "faults.set" | "message.received" | "message.dropped" | "message.deleted" | "inbox.expired" | "inbox.deleted";
			/** When it happened. */
			time: string;
			/** The inbox. */
			inbox_id: string;
			/** The message; null if the event is about the inbox. */
			message_id: string | null;
			/** The key that caused the event; null if no key did. */
			key_id: string | null;
			/** The inbox token or console session that was used, and made with the key; null if the key itself was. */
			actor: string | null;
			/** The properties of the inbox that were changed; null if `type` is not `inbox.changed`. */
			changed: ("duration" | "name" | "labels")[] | null;
			position: components["schemas"]["Position"];
			/** Bytes of a mail's source. */
			size: number | null;
			/** SHA-256 of the sealed bytes of a mail on the log, or of the source of a mail that a fault dropped. */
			digest: string | null;
		};
		/** What happened to an inbox: the JSON in `data` of a server-sent event. */
		EventBody: components["schemas"]["MessageReceivedEvent"] | components["schemas"]["MessageDeletedEvent"] | components["schemas"]["InboxExpiredEvent"] | components["schemas"]["InboxDeletedEvent"];
		/** A deleted message, as in an event. */
		EventDeletedMessage: {
			/** Never changes and is never reused. */
			id: string;
			/** The inbox that received it. */
			inbox_id: string;
			/** When it was deleted. */
			deleted_at: string;
		};
		/** A domain, as in an event. */
		EventDomain: {
			/** The id of the domain. */
			id: string;
			/** The name, in Unicode. */
			name: string;
			/** The environment whose inboxes receive its mail. */
			environment: string;
			/** Its new state. */
			state: "verified" | "lapsed";
		};
		/** An ended inbox, as in an event. */
		EventEndedInbox: {
			/** Never changes and is never reused. */
			id: string;
			/** How it ended. */
			state: "deleted" | "expired";
			/** When it ended. */
			ended_at: string;
		};
		/** A message, as in an event. */
		EventMessage: {
			/** Never changes and is never reused. */
			id: string;
			/** The inbox that received it. */
			inbox_id: string;
			/** When it was accepted. */
			received_at: string;
			/** The decoded subject; null if the mail has none. */
			subject: string | null;
			/** The first From address, or the envelope's MAIL FROM if there is none. */
			sender: string;
			/** The RCPT TO address of this copy. */
			recipient: string;
			/** What follows the first `+` in the local part of `recipient` (RFC 5233); null without one. */
			recipient_detail: string | null;
			from: components["schemas"]["Mailbox"][];
			to: components["schemas"]["Mailbox"][];
			cc: components["schemas"]["Mailbox"][];
			reply_to: components["schemas"]["Mailbox"][];
			/** The Date header, in UTC; null if missing or unreadable. */
			date: string | null;
			/** The text part; null if the mail has none. */
			text: string | null;
			/** The HTML part; null if the mail has none. */
			html: string | null;
			/** The visible text of `html`, which the filter `text` also searches; null without `html`. */
			visible_text: string | null;
			/** From the HTML's anchors, areas and forms, then the text, in order, without repeats. */
			links: components["schemas"]["Link"][];
			/** One-time codes, the most likely first. */
			codes: components["schemas"]["Code"][];
			attachments: components["schemas"]["Attachment"][];
			/** All headers in their order, including repeated ones; null if they are left out. */
			headers: components["schemas"]["Header"][] | null;
			envelope: components["schemas"]["Envelope"];
			authentication: components["schemas"]["Authentication"];
			/** The size of the source in bytes. */
			size: number;
			/** SHA-256 of the source. */
			sha256: string;
			/** The path of the source. */
			raw_url: string;
			/** Empty if the whole mail could be read. */
			warnings: components["schemas"]["Warning"][];
			/** True in a message that was put in by the API, without SMTP. */
			injected?: boolean;
			/** Only in a message that a fault repeated: the original. */
			duplicate_of?: string;
			/** Properties that are null because the event would exceed 256 kB. The message itself has them. */
			truncated?: ("html" | "visible_text" | "text" | "headers")[];
		};
		/** A match of the expression `extract` in a mail. */
		Extracted: {
			/** The match. */
			text: string;
			/** What the capturing groups matched, also the named ones, in their order. */
			groups: (string | null)[];
		};
		/** An error in a request, and its location: `pointer`, `parameter` or `header`. */
		Fault: {
			/** What is wrong there. */
			detail: string;
			/** The location in the body (RFC 6901); empty for the whole body. */
			pointer?: string;
			/** The parameter of the query or the path. */
			parameter?: string;
			/** The header. */
			header?: string;
		};
		/** A header of a mail. */
		Header: {
			/** The name as written. */
			name: string;
			/** The value, decoded and unfolded. */
			value: string;
		};
		/** A new name below the mail domain, which needs no DNS records. */
		HostedDomain: {
			/** Whether Mayfly makes a name below its mail domain, verified at once. */
			hosted: boolean;
			/** The environment whose inboxes receive the mail. Default: the key's environment. */
			environment?: string;
			/** Whether the domain includes all its subdomains. They need an MX record `*.<domain>`. */
			subdomains?: boolean;
			/** What becomes of mail to an address without an inbox. Default: `create` for a hosted domain, else `reject`. */
			catch_all?: components["schemas"]["DomainCatchAll"];
		};
		/** Which mail clients support the HTML and CSS of a mail, from the data of caniemail.com. */
		HtmlCheck: {
			/** The mean of 100 for full, 50 for partial and 0 for no support, over every feature that the mail uses and every client whose support for it is known. Two decimals; 100 if it uses none. */
			supported_percent: number;
			/** The least supported feature first. */
			warnings: components["schemas"]["HtmlWarning"][];
		};
		/** An element, or a part of a style sheet, in the HTML of a mail. */
		HtmlPosition: {
			/** Its line in `html` of the message, from 1. */
			line: number;
			/** Its UTF-16 code unit in that line, from 1. */
			column: number;
		};
		/** A feature that a mail uses and that some mail clients do not support. */
		HtmlWarning: {
			feature: {
				/** Its name for programs. */
				slug: string;
				/** Its name. */
				title: string;
				/** Its page at caniemail.com. */
				url: string;
			};
			where: {
				/** How often the mail uses it. */
				count: number;
				/** The first ones, in order. */
				positions: components["schemas"]["HtmlPosition"][];
			};
			/** The clients that support it partially or not, by name. */
			clients: components["schemas"]["ClientSupport"][];
		};
		/** An address that receives mail for a limited time. */
		Inbox: {
			/** Never changes and is never reused. */
			id: string;
			/** The address. Upper and lower case are the same, and mail to `local+tag@` arrives in the same inbox. It is made up, except that of an inbox that mail to its address has made. */
			address: string;
			/**
			 * It receives mail.
			 * @constant
			 */
			state: "active";
			/** The lifetime that was last requested. */
			duration: string;
			/** Whether reading its mail requires a password. */
			password_protected: boolean;
			/** A name to show to people. */
			name: string | null;
			labels: components["schemas"]["InboxLabels"];
			/** The environment of the key that created it. */
			environment: string;
			/** When it was created. */
			created_at: string;
			/** When it expires, with all its mail. */
			expires_at: string;
			/** The number of messages that it has received, without deleted ones. */
			message_count: number;
			/** When the newest message arrived. */
			last_message_at: string | null;
		};
		/** The event `inbox.deleted`. */
		InboxDeletedEvent: {
			/**
			 * The type of the event.
			 * @constant
			 */
			type: "inbox.deleted";
			/** When it happened. */
			timestamp: string;
			data: components["schemas"]["EventEndedInbox"];
		};
		/** The event `inbox.expired`. */
		InboxExpiredEvent: {
			/**
			 * The type of the event.
			 * @constant
			 */
			type: "inbox.expired";
			/** When it happened. */
			timestamp: string;
			data: components["schemas"]["EventEndedInbox"];
		};
		/** A fault on purpose. It applies if all of its conditions hold. */
		InboxFault: {
			/** When it happens: at RCPT TO, after the content of the mail, or once the mail is accepted. */
			stage: "rcpt" | "data" | "after_accept";
			/** `reject` and `delay` at `rcpt` and `data`; `drop` and `duplicate` at `after_accept`: the sender gets its 250, and the mail is lost, or arrives twice. */
			action: "reject" | "delay" | "drop" | "duplicate";
			/** With `reject`: the reply code. Default: `451`. */
			code?: number;
			/** With `reject`: the enhanced status code (RFC 3463). Default: `4.0.0` or `5.0.0`. */
			enhanced_code?: string;
			/** With `reject`: the text of the reply. */
			text?: string;
			/** With `delay`: how long the reply is delayed, in milliseconds. */
			delay_ms?: number;
			/** Only at the first n attempts of each pair of sender and recipient. With 451, this is greylisting. */
			first_n?: number;
			/** Only at every nth attempt. */
			every_n?: number;
			/** Only with this probability. */
			probability?: number;
			/** With `probability`: the attempts that are chosen depend only on this number. Default: a random one. */
			seed?: number;
		};
		/** Pairs of a name of up to 64 characters and a value of up to 128, to find inboxes by. In a request, all names and values together have at most 1024 bytes in UTF-8. They are kept after the inbox has ended, so do not put personal data in them. */
		InboxLabels: {
			[key: string]: string;
		};
		/** How many messages an inbox has received. */
		InboxMessages: {
			inbox_id: string;
			/** The number of messages that it has received. */
			count: number;
		};
		/** A token for one inbox. */
		InboxToken: {
			/** The id of the token. */
			id: string;
			/** What it may do: `read`, or also delete the inbox. */
			access: "read" | "owner";
			/** When it expires, at the latest with its inbox. */
			expires_at: string;
			/** When it was issued. */
			created_at: string;
		};
		/** A token for one inbox, with its secret. */
		InboxTokenWithSecret: {
			/** The id of the token. */
			id: string;
			/** What it may do: `read`, or also delete the inbox. */
			access: "read" | "owner";
			/** When it expires, at the latest with its inbox. */
			expires_at: string;
			/** When it was issued. */
			created_at: string;
			/** The bearer token. Only in this answer. */
			token: string;
		};
		/** A mail. `To` is the address of the inbox, unless `headers` has another one. */
		InjectMessage: {
			/** The sender: an address, or `Name <address>`. */
			from: string;
			/** The subject. */
			subject: string;
			/** The text part. */
			text?: string;
			/** The HTML part. */
			html?: string;
			/** Further header fields. */
			headers?: components["schemas"]["MailHeaders"];
			/** The attachments. */
			attachments?: components["schemas"]["AttachContent"][];
		};
		IssueKey: {
			name: string;
			environment: string;
			scopes?: ("inboxes" | "read" | "audit" | "admin" | "operator")[];
			rate_limit?: number | null;
		};
		Key: {
			id: string;
			name: string;
			environment: string;
			scopes: ("inboxes" | "read" | "audit" | "admin" | "operator")[];
			prefix: string;
			created_at: string;
			last_used_at: string | null;
			state: "active" | "revoked";
			rate_limit: number | null;
			usage: components["schemas"]["KeyUsage"] | null;
		};
		KeyUsage: {
			requests: number;
			refusals: number;
			inboxes: number;
			mails: number;
			bytes: number;
		};
		KeyWithSecret: {
			id: string;
			name: string;
			environment: string;
			scopes: ("inboxes" | "read" | "audit" | "admin" | "operator")[];
			prefix: string;
			created_at: string;
			last_used_at: string | null;
			state: "active" | "revoked";
			rate_limit: number | null;
			usage: components["schemas"]["KeyUsage"] | null;
			secret: string;
		};
		Limits: {
			requests_per_minute: number;
			account_requests_per_minute: number;
			retention: string;
			max_message_bytes: number;
			max_messages: number;
			max_inboxes: number;
			max_stored_bytes: number;
		};
		/** A link, form or bare URL in a mail. */
		Link: {
			/** Its target URL, http or https. */
			href: string;
			/** The visible text; null for a bare URL. */
			text: string | null;
		};
		/** A name and address in a header. */
		Mailbox: {
			/** The display name. */
			name: string | null;
			/** The address, as written. */
			address: string;
		};
		/** Header fields by their names, such as `To`, `Reply-To` or `X-Campaign`. */
		MailHeaders: {
			[key: string]: string;
		};
		ManifestLine: {
			recipient: string;
			id: string;
			sent_at?: string | null;
			sha256?: string | null;
		};
		/** A received mail, parsed. Parts that it does not have are null or empty. */
		Message: {
			/** Never changes and is never reused. */
			id: string;
			/** The inbox that received it. */
			inbox_id: string;
			/** When it was accepted. */
			received_at: string;
			/** The decoded subject; null if the mail has none. */
			subject: string | null;
			/** The first From address, or the envelope's MAIL FROM if there is none. */
			sender: string;
			/** The RCPT TO address of this copy. */
			recipient: string;
			/** What follows the first `+` in the local part of `recipient` (RFC 5233); null without one. */
			recipient_detail: string | null;
			from: components["schemas"]["Mailbox"][];
			to: components["schemas"]["Mailbox"][];
			cc: components["schemas"]["Mailbox"][];
			reply_to: components["schemas"]["Mailbox"][];
			/** The Date header, in UTC; null if missing or unreadable. */
			date: string | null;
			/** The text part; null if the mail has none. */
			text: string | null;
			/** The HTML part; null if the mail has none. */
			html: string | null;
			/** The visible text of `html`, which the filter `text` also searches; null without `html`. */
			visible_text: string | null;
			/** From the HTML's anchors, areas and forms, then the text, in order, without repeats. */
			links: components["schemas"]["Link"][];
			/** One-time codes, the most likely first. */
			codes: components["schemas"]["Code"][];
			attachments: components["schemas"]["Attachment"][];
			/** All headers in their order, including repeated ones. */
			headers: components["schemas"]["Header"][];
			envelope: components["schemas"]["Envelope"];
			authentication: components["schemas"]["Authentication"];
			/** The size of the source in bytes. */
			size: number;
			/** SHA-256 of the source. */
			sha256: string;
			/** The path of the source. */
			raw_url: string;
			/** Empty if the whole mail could be read. */
			warnings: components["schemas"]["Warning"][];
			/** True in a message that was put in by the API, without SMTP. */
			injected?: boolean;
			/** Only in a message that a fault repeated: the original. */
			duplicate_of?: string;
			/** Only with `extract`: its different matches in the subject, the text and the visible text, in this order. At most 100 matches, with 65,536 characters in all. */
			extracted?: components["schemas"]["Extracted"][];
		};
		/** The messages of a label. */
		MessageCount: {
			/** The number of messages that the inboxes of the label have received. */
			count: number;
			/** The number of inboxes. */
			inboxes: number;
			/** A position before all messages that arrive later. One that arrived while counting may be counted and also be behind it. */
			cursor: string;
		};
		/** The event `message.deleted`. */
		MessageDeletedEvent: {
			/**
			 * The type of the event.
			 * @constant
			 */
			type: "message.deleted";
			/** When it happened. */
			timestamp: string;
			data: components["schemas"]["EventDeletedMessage"];
		};
		/** The event `message.received`. */
		MessageReceivedEvent: {
			/**
			 * The type of the event.
			 * @constant
			 */
			type: "message.received";
			/** When it happened. */
			timestamp: string;
			data: components["schemas"]["EventMessage"];
		};
		MissingMail: {
			kind: "missing";
			recipient: string;
			id: string;
			line: number;
			sent_at: string | null;
		};
		/** A message that a wait examined, and why it did not match. */
		NearMiss: {
			/** The id of the message. */
			id: string;
			/** The id of its inbox. */
			inbox_id: string;
			/** Its subject. */
			subject: string | null;
			/** When it was accepted. */
			received_at: string;
			/** A sentence for each filter that it does not match. */
			mismatches: string[];
		};
		OpenAccount: {
			name: string;
			plan: string;
			limits?: components["schemas"]["AccountLimits"] | null;
		};
		/** A domain of your own. */
		OwnDomain: {
			/** The domain, in Unicode or as A-labels. Not a public suffix such as `co.uk`, and not the mail domain of Mayfly. */
			name: string;
			/** The environment whose inboxes receive the mail. Default: the key's environment. */
			environment?: string;
			/** Whether the domain includes all its subdomains. They need an MX record `*.<domain>`. */
			subdomains?: boolean;
			/** What becomes of mail to an address without an inbox. Default: `create` for a hosted domain, else `reject`. */
			catch_all?: components["schemas"]["DomainCatchAll"];
		};
		Position: {
			/** @constant */
			topic: "inbox-events";
			partition: number;
			offset: number;
		};
		/** An error (RFC 9457). */
		Problem: {
			/** The URL of a page about the problem. */
			type: string;
			/** The same for every problem with this `code`. */
			title: string;
			/** The status of the answer. */
			status: number;
			/** What is wrong with this request. */
			detail: string;
			/** The kind of the problem, for programs. */
			code: "invalid-request" | "malformed-json" | "missing-api-key" | "invalid-api-key" | "revoked-api-key" | "sign-in-failed" | "not-signed-in" | "plan-lacks-api-access" | "missing-scope" | "link-check-disabled" | "untrusted-origin" | "inbox-password-required" | "inbox-password-invalid" | "not-found" | "no-matching-message" | "method-not-allowed" | "not-acceptable" | "already-signed-in" | "idempotency-key-in-use" | "address-taken" | "inbox-full" | "inbox-deleted" | "inbox-expired" | "message-deleted" | "body-too-large" | "unsupported-media-type" | "idempotency-key-reused" | "domain-not-verified" | "html-too-complex" | "rate-limited" | "quota-exceeded" | "too-many-password-attempts" | "internal-error" | "catching-up" | "log-unavailable" | "read-model-unavailable" | "busy" | "too-many-streams" | "too-many-waits" | "shutting-down";
			/** What to do. */
			fix: string;
			/** The value of the header `X-Request-Id`. */
			request_id: string;
			/** With `invalid-request`: all errors in the request. */
			errors?: components["schemas"]["Fault"][];
			/** When the inbox ended. */
			ended_at?: string;
			/** The key that deleted the inbox; null if it expired. */
			ended_by?: string | null;
			/** When the message was deleted. */
			deleted_at?: string;
			/** With `no-matching-message`: the number of messages that were examined. */
			examined?: number;
			/** With `no-matching-message`: the messages nearest to a match. */
			nearest?: components["schemas"]["NearMiss"][];
			/** With `no-matching-message`, if `count` was sent: the number of messages that the label has received. */
			count?: number;
			/** The `count` that was sent. */
			expected?: number;
			/** The first 100 inboxes of the label with too few messages. */
			too_few?: components["schemas"]["InboxMessages"][];
			/** The first 100 inboxes of the label with too many messages. */
			too_many?: components["schemas"]["InboxMessages"][];
			/** With `quota-exceeded`: active inboxes, or the bytes of the mail in them. */
			quota?: "inboxes" | "stored-bytes";
			/** The quota of the account: its `max_inboxes` or `max_stored_bytes`. */
			limit?: number;
			/** How much of it is used, with what is under way. */
			used?: number;
			/** With `no-matching-message`: the position after the last message that was examined. */
			cursor?: string;
		};
		/** Milliseconds: median, 95th and 99th percentile. */
		Quantiles: {
			p50: number;
			p95: number;
			p99: number;
		};
		/** Milliseconds: median, 95th and 99th percentile, maximum. */
		QuantilesAndMax: {
			p50: number;
			p95: number;
			p99: number;
			max: number;
		};
		/** A recipient whose mail was refused. */
		RefusedMail: {
			/** When the recipient was last refused. */
			time: string;
			/** The address of RCPT TO, as the client sent it. */
			recipient: string;
			/** The address of MAIL FROM; empty for a bounce. */
			sender: string;
			/** The code of the SMTP reply. 400 to 499: the client may try again. */
			code: number;
			/** The text of the reply, which begins with the enhanced status code (RFC 3463). */
			reason: string;
			/** How often this recipient was refused to this sender for this reason, since it was first listed. */
			count: number;
		};
		/** A new webhook of an inbox. */
		RegisterInboxWebhook: {
			/** The URL of the endpoint: http or https, without user name, password or fragment. */
			url: string;
			/** The events to deliver. Default: `["message.received"]`. */
			events?: ("message.received" | "message.deleted" | "inbox.expired" | "inbox.deleted")[];
			/** The first event to deliver: `now`, `beginning` for all existing events, or a time (RFC 3339) for the events since then. Default: `"now"`. */
			start_from?: string;
		};
		/** A new webhook of an environment. */
		RegisterWebhook: {
			/** The URL of the endpoint: http or https, without user name, password or fragment. */
			url: string;
			/** The events to deliver. Default: `["message.received"]`. */
			events?: ("message.received" | "message.deleted" | "inbox.expired" | "inbox.deleted" | "domain.verified" | "domain.lapsed")[];
			/** The first event to deliver: `now`, `beginning` for all existing events, or a time (RFC 3339) for the events since then. Default: `"now"`. */
			start_from?: string;
		};
		Replay: {
			id: string;
			webhook_id: string;
			state: "running" | "completed" | "cancelled";
			requested: number;
			done: number;
			created_at: string;
		};
		/** The events of single deliveries. */
		ReplayOfDeliveries: {
			/** Deliveries of the webhook, instead of a time range. Samples are skipped. */
			delivery_ids: string[];
			/** Only events whose delivery has not succeeded: its last attempt failed, it waits for another attempt after a failed one, or it was abandoned because the webhook was disabled or the replay was cancelled. Default: `false`. */
			only_failed?: boolean;
		};
		/** All events in a time range. */
		ReplayOfRange: {
			/** The start of the range (RFC 3339). Requires `to`. */
			from: string;
			/** The end of the range, exclusive; at most now. */
			to: string;
			/** Only events whose delivery has not succeeded: its last attempt failed, it waits for another attempt after a failed one, or it was abandoned because the webhook was disabled or the replay was cancelled. Default: `false`. */
			only_failed?: boolean;
		};
		/** Which events to send again. */
		RequestReplay: components["schemas"]["ReplayOfRange"] | components["schemas"]["ReplayOfDeliveries"];
		/** A token that was revoked. */
		RevokedInboxToken: {
			/** The id of the token. */
			id: string;
			/** When it was revoked. The same in the answer to a repeat. */
			revoked_at: string;
		};
		RotateKey: {
			grace?: string;
		};
		/** How to replace the secret of a webhook. */
		RotateWebhookSecret: {
			/** How long requests are also signed with the former secret, at most 7 days: `0`, or a whole number and one of `s`, `m`, `h`, `d`, `w`. Default: `"24h"`. */
			grace?: string;
		};
		RunDifference: {
			kind: "duplicate" | "unexpected" | "late" | "altered" | "reordered";
			recipient: string;
			id: string | null;
			message_id: string;
			inbox_id: string;
			received_at: string;
			line?: number;
			sent_at?: string;
			delay_ms?: number;
			late_by_ms?: number;
			sha256?: string;
			received_sha256?: string;
			after_line?: number;
		};
		/** The last line of a verification that failed after its answer had begun. It has no summary. */
		RunProblem: {
			kind: "problem";
			problem: components["schemas"]["Problem"];
		};
		RunSummary: {
			kind: "summary";
			expected: number;
			found: number;
			missing: number;
			duplicate: number;
			unexpected: number;
			late: number;
			altered: number;
			reordered: number;
			erased: number;
			visible_ms: components["schemas"]["QuantilesAndMax"] | null;
		};
		/** All faults, in the order in which they are checked. */
		SetFaults: components["schemas"]["InboxFault"][];
		/** What to change of an inbox. Every property is optional. */
		UpdateInbox: {
			/** The lifetime, counted from the creation: a whole number and one of `m`, `h`, `d`, `w`, from one minute to the retention of the plan. */
			duration?: string;
			/** A name to show to people; null removes it. */
			name?: string | null;
			/** Replaces all labels. */
			labels?: components["schemas"]["InboxLabels"];
		};
		UsageReport: {
			counted_up_to: string | null;
			requests: number;
			refusals: number;
			inboxes: number;
			mails: number;
			bytes: number;
			duplicates: number;
			read: number;
			inboxes_without_mail: number;
			accept_ms: components["schemas"]["QuantilesAndMax"] | null;
			visible_ms: components["schemas"]["QuantilesAndMax"] | null;
			first_read_ms: components["schemas"]["QuantilesAndMax"] | null;
			first_mail_at: string | null;
			last_mail_at: string | null;
			mails_per_second: number | null;
			timeline: components["schemas"]["UsageTimelineBucket"][];
		};
		UsageRow: {
			from: string;
			to: string;
			group: string | null;
			group_name: string | null;
			requests: number;
			refusals: number;
			inboxes: number;
			mails: number;
			bytes: number;
			request_ms: components["schemas"]["Quantiles"] | null;
			visible_ms: components["schemas"]["Quantiles"] | null;
		};
		UsageTimelineBucket: {
			from: string;
			to: string;
			mails: number;
			bytes: number;
		};
		/** The build and engine of this server. */
		Version: {
			version: string;
			/** The git commit that it was built from; null if it is unknown. */
			commit: string | null;
			engine: "embedded" | "distributed";
		};
		/** A part of a mail that could not be read. */
		Warning: {
			/** The kind of the warning, for programs. */
			code: string;
			/** The warning, for people. */
			detail: string;
		};
		/** An endpoint to which the events of an inbox or of an environment are delivered. Its signing secret is shown only once. */
		Webhook: {
			/** The id of the webhook. It never changes. */
			id: string;
			/** The URL of the endpoint. */
			url: string;
			/** The inbox whose events are delivered; null for all inboxes of the environment. */
			inbox_id: string | null;
			/** The events that are delivered. */
			events: ("message.received" | "message.deleted" | "inbox.expired" | "inbox.deleted" | "domain.verified" | "domain.lapsed")[];
			/** Whether events are delivered. */
			state: "active" | "disabled";
			/** When it was registered. */
			created_at: string;
			/** Why it is disabled: `by-request`; `gone` if its endpoint answered 410; `failing` after 5 days in which every attempt failed. Null if it is active. */
			disabled_reason: ("by-request" | "gone" | "failing") | null;
		};
		/** A webhook with its new secret. */
		WebhookWithSecret: {
			/** The id of the webhook. It never changes. */
			id: string;
			/** The URL of the endpoint. */
			url: string;
			/** The inbox whose events are delivered; null for all inboxes of the environment. */
			inbox_id: string | null;
			/** The events that are delivered. */
			events: ("message.received" | "message.deleted" | "inbox.expired" | "inbox.deleted" | "domain.verified" | "domain.lapsed")[];
			/** Whether events are delivered. */
			state: "active" | "disabled";
			/** When it was registered. */
			created_at: string;
			/** Why it is disabled: `by-request`; `gone` if its endpoint answered 410; `failing` after 5 days in which every attempt failed. Null if it is active. */
			disabled_reason: ("by-request" | "gone" | "failing") | null;
			/** The signing secret in the form of Standard Webhooks: `whsec_` and base64. Only in this answer. */
			secret: string;
		};
	};
}
export type $defs = Record<string, never>;
export interface operations {
	listInboxes: {
		parameters: {
			query?: {
				/** The state of the inboxes. */
				state?: "active" | "deleted" | "expired";
				/** A label `<name>:<value>` that they must have. Repeat to require several labels. */
				label?: string[];
				/** Only the newest inbox with this address, if it is in that state. */
				address?: string;
				/** The maximum number of items on a page. */
				limit?: number;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
				/** The position to continue from, as in `Link`. */
				cursor?: string;
			};
		};
	};
	waitForInboxMessage: {
		parameters: {
			query?: {
				/** Seconds to wait for a message. */
				timeout?: number;
				/** Text that the subject must contain, in upper or lower case. */
				subject?: string;
				/** Text that the sender's address or name must contain, in upper or lower case. */
				sender?: string;
				/** Text that the recipient must contain, in upper or lower case. */
				recipient?: string;
				/** Text that `recipient_detail` must contain, in upper or lower case. */
				detail?: string;
				/** Text that the text part, or the visible text of the HTML, must contain, in upper or lower case. */
				text?: string;
				/** Text that an address or a name in `to` must contain, in upper or lower case. */
				to?: string;
				/** A header `<name>:<text>`: a header of that name must contain the text, in upper or lower case. Without a text, the message must have the header. Repeat to require several headers. */
				header?: string[];
				/** The earliest `received_at` (RFC 3339). */
				since?: string;
				/** The end of the time in which it was received, exclusive (RFC 3339). */
				until?: string;
				/** `true`: it must have a one-time code. `false`: it must not. */
				has_code?: boolean;
				/** `true`: it must have a link. `false`: it must not. */
				has_link?: boolean;
				/** A regular expression in the syntax of RE2, searched in the subject, the text and the visible text. Messages then have its matches as `extracted`. A wait also requires a match; a list has all messages. */
				extract?: string;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
				/** The position to continue from, as in `Link` or `Mayfly-Cursor`. */
				cursor?: string;
			};
		};
	};
	listInboxMessages: {
		parameters: {
			query?: {
				/** The maximum number of items on a page. */
				limit?: number;
				/** Text that the subject must contain, in upper or lower case. */
				subject?: string;
				/** Text that the sender's address or name must contain, in upper or lower case. */
				sender?: string;
				/** Text that the recipient must contain, in upper or lower case. */
				recipient?: string;
				/** Text that `recipient_detail` must contain, in upper or lower case. */
				detail?: string;
				/** Text that the text part, or the visible text of the HTML, must contain, in upper or lower case. */
				text?: string;
				/** Text that an address or a name in `to` must contain, in upper or lower case. */
				to?: string;
				/** A header `<name>:<text>`: a header of that name must contain the text, in upper or lower case. Without a text, the message must have the header. Repeat to require several headers. */
				header?: string[];
				/** The earliest `received_at` (RFC 3339). */
				since?: string;
				/** The end of the time in which it was received, exclusive (RFC 3339). */
				until?: string;
				/** `true`: it must have a one-time code. `false`: it must not. */
				has_code?: boolean;
				/** `true`: it must have a link. `false`: it must not. */
				has_link?: boolean;
				/** A regular expression in the syntax of RE2, searched in the subject, the text and the visible text. Messages then have its matches as `extracted`. A wait also requires a match; a list has all messages. */
				extract?: string;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
				/** The position to continue from, as in `Link` or `Mayfly-Cursor`. */
				cursor?: string;
			};
		};
	};
	getInboxMessage: {
		parameters: {
			query?: {
				/** Whether the answer includes the source. */
				raw?: boolean;
				/** A regular expression in the syntax of RE2, searched in the subject, the text and the visible text. The message then has its matches as `extracted`. */
				extract?: string;
			};
		};
	};
	waitForMessage: {
		parameters: {
			query?: {
				/** A label `<name>:<value>` that the inbox must have. Repeat to require several labels. */
				label?: string[];
				/** Wait until the inboxes of one `label` have received this number of messages, counting deleted ones. Only `mode`, `per_inbox` and `timeout` may be sent with it. */
				count?: number;
				/** With `count`: whether more messages are allowed. `exactly` must hold for two seconds, which may be after the `timeout`. */
				mode?: "at_least" | "exactly";
				/** With `count`: the number of messages that each inbox must have received at least, in both modes. */
				per_inbox?: number;
				/** Text that the subject must contain, in upper or lower case. */
				subject?: string;
				/** Text that the sender's address or name must contain, in upper or lower case. */
				sender?: string;
				/** Text that the recipient must contain, in upper or lower case. */
				recipient?: string;
				/** Text that `recipient_detail` must contain, in upper or lower case. */
				detail?: string;
				/** Text that the text part, or the visible text of the HTML, must contain, in upper or lower case. */
				text?: string;
				/** Text that an address or a name in `to` must contain, in upper or lower case. */
				to?: string;
				/** A header `<name>:<text>`: a header of that name must contain the text, in upper or lower case. Without a text, the message must have the header. Repeat to require several headers. */
				header?: string[];
				/** The earliest `received_at` (RFC 3339). */
				since?: string;
				/** The end of the time in which it was received, exclusive (RFC 3339). */
				until?: string;
				/** `true`: it must have a one-time code. `false`: it must not. */
				has_code?: boolean;
				/** `true`: it must have a link. `false`: it must not. */
				has_link?: boolean;
				/** A regular expression in the syntax of RE2, searched in the subject, the text and the visible text. Messages then have its matches as `extracted`. A wait also requires a match; a list has all messages. */
				extract?: string;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
				/** The position to continue from, as in `Link` or `Mayfly-Cursor`. */
				cursor?: string;
				/** Seconds to wait for a message. */
				timeout?: number;
			};
		};
	};
	listMessages: {
		parameters: {
			query?: {
				/** A search: words, "phrases" and filters such as `from:app`, `subject:"your code"`, `inbox:k3v9`, `label:run:42`, `has:code` and `after:2026-11-21`, which must all match; `-` before one means that it must not. */
				q?: string;
				/** A label `<name>:<value>` that the inbox must have. Repeat to require several labels. */
				label?: string[];
				/** Text that the subject must contain, in upper or lower case. */
				subject?: string;
				/** Text that the sender's address or name must contain, in upper or lower case. */
				sender?: string;
				/** Text that the recipient must contain, in upper or lower case. */
				recipient?: string;
				/** Text that `recipient_detail` must contain, in upper or lower case. */
				detail?: string;
				/** Text that the text part, or the visible text of the HTML, must contain, in upper or lower case. */
				text?: string;
				/** Text that an address or a name in `to` must contain, in upper or lower case. */
				to?: string;
				/** A header `<name>:<text>`: a header of that name must contain the text, in upper or lower case. Without a text, the message must have the header. Repeat to require several headers. */
				header?: string[];
				/** The earliest `received_at` (RFC 3339). */
				since?: string;
				/** The end of the time in which it was received, exclusive (RFC 3339). */
				until?: string;
				/** `true`: it must have a one-time code. `false`: it must not. */
				has_code?: boolean;
				/** `true`: it must have a link. `false`: it must not. */
				has_link?: boolean;
				/** A regular expression in the syntax of RE2, searched in the subject, the text and the visible text. Messages then have its matches as `extracted`. A wait also requires a match; a list has all messages. */
				extract?: string;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
				/** The position to continue from, as in `Link` or `Mayfly-Cursor`. */
				cursor?: string;
				/** The maximum number of items on a page. */
				limit?: number;
			};
		};
	};
	verifyRun: {
		parameters: {
			query?: {
				/** The header that identifies a mail, in upper or lower case. */
				id_header?: string;
				/** The milliseconds after `sent_at` within which a mail must be received. Without it, no mail is late. */
				late_ms?: number;
				/** Whether the mail of each inbox must be received in the order of its lines. */
				order?: boolean;
			};
		};
	};
	listAccounts: {
		parameters: {
			query?: {
				/** The maximum number of items on a page. */
				limit?: number;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
				/** The position to continue from, as in `Link`. */
				cursor?: string;
			};
		};
	};
	listKeys: {
		parameters: {
			query?: {
				/** The maximum number of items on a page. */
				limit?: number;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
				/** The position to continue from, as in `Link`. */
				cursor?: string;
			};
		};
	};
	listDomains: {
		parameters: {
			query?: {
				/** The maximum number of items on a page. */
				limit?: number;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
				/** The position to continue from, as in `Link`. */
				cursor?: string;
			};
		};
	};
	listInboxHistory: {
		parameters: {
			query?: {
				/** The maximum number of items on a page. */
				limit?: number;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
				/** The position to continue from, as in `Link`. */
				cursor?: string;
			};
		};
	};
	streamInboxEvents: {
		parameters: {
			query?: {
				/** The position to start from, a `Mayfly-Cursor`. Default: now. `Last-Event-ID` takes precedence. */
				cursor?: string;
			};
		};
	};
	streamEvents: {
		parameters: {
			query?: {
				/** A label `<name>:<value>` that the inbox must have. Repeat to require several labels. */
				label?: string[];
				/** The position to start from, a `Mayfly-Cursor`. Default: now. `Last-Event-ID` takes precedence. */
				cursor?: string;
			};
		};
	};
	listInboxWebhooks: {
		parameters: {
			query?: {
				/** The maximum number of items on a page. */
				limit?: number;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
				/** The position to continue from, as in `Link`. */
				cursor?: string;
			};
		};
	};
	listWebhooks: {
		parameters: {
			query?: {
				/** The maximum number of items on a page. */
				limit?: number;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
				/** The position to continue from, as in `Link`. */
				cursor?: string;
			};
		};
	};
	listDeliveries: {
		parameters: {
			query?: {
				/** Only deliveries in this state. */
				state?: "pending" | "succeeded" | "failed" | "abandoned";
				/** The maximum number of items on a page. */
				limit?: number;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
				/** The position to continue from, as in `Link`. */
				cursor?: string;
			};
		};
	};
	listReplays: {
		parameters: {
			query?: {
				/** The maximum number of items on a page. */
				limit?: number;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
				/** The position to continue from, as in `Link`. */
				cursor?: string;
			};
		};
	};
	readUsage: {
		parameters: {
			query?: {
				/** The length of the intervals, which are in UTC. */
				interval?: "second" | "minute" | "hour" | "day";
				/** What to group the rows of an interval by: `key`, `environment`, `label.<name>`, or `none`. */
				group_by?: string;
				/** Only usage with the label `<name>:<value>`. Repeat to require several labels. */
				label?: string[];
				/** The start of the span (RFC 3339). */
				from?: string;
				/** The end of the span, exclusive. Default: now. */
				to?: string;
			};
		};
	};
	reportUsage: {
		parameters: {
			query: {
				/** Only usage with the label `<name>:<value>`. Repeat to require several labels. */
				label: string[];
				/** The start of the span (RFC 3339). */
				from?: string;
				/** The end of the span, exclusive. Default: now. */
				to?: string;
			};
		};
	};
	exportUsage: {
		parameters: {
			query?: {
				/** The format of the file. In CSV, `labels` is a JSON array and missing values are empty. */
				format?: "parquet" | "ndjson" | "csv";
				/** The rows of the file: figures by key and minute (`usage`, or `usage_minute`), hour or day, by route or by webhook; or each event of one kind. docs/analytics.md lists the columns. */
				table?: "usage" | "usage_minute" | "usage_hour" | "usage_day" | "routes_minute" | "webhooks_minute" | "requests" | "inbox_events" | "mail_events" | "webhook_events";
				/** The start of the span (RFC 3339). */
				from?: string;
				/** The end of the span, exclusive. Default: now. */
				to?: string;
			};
		};
	};
}
