// Written by `npm run generate`: the schemas of the OpenAPI document, and the query of each operation.

export interface components {
	schemas: {
		Account: {
			id: string;
			name: string | null;
			plan: string;
			limits: components["schemas"]["Limits"] | null;
			environments: string[];
			sign_in: "any" | "provider";
			state: "active" | "suspended" | "closed";
			suspended_at: string | null;
			closed_at: string | null;
			erased_at: string | null;
			created_at: string;
		};
		AccountLimits: {
			requests_per_minute?: number;
			account_requests_per_minute?: number;
			retention?: string;
			max_messages?: number;
			max_inboxes?: number;
			max_inboxes_per_day?: number;
			max_messages_per_day?: number;
			max_stored_bytes?: number;
			max_webhooks?: number;
			max_domains?: number;
			max_members?: number;
		};
		AccountWithKey: {
			id: string;
			name: string | null;
			plan: string;
			limits: components["schemas"]["Limits"] | null;
			environments: string[];
			sign_in: "any" | "provider";
			state: "active" | "suspended" | "closed";
			suspended_at: string | null;
			closed_at: string | null;
			erased_at: string | null;
			created_at: string;
			key: components["schemas"]["KeyWithSecret"] | null;
		};
		Activity: {
			id: string;
			time: string;
			action: string;
			actor: {
				type: "key" | "member" | "session" | "token" | "operator" | "system";
				id: string | null;
				name: string | null;
			};
			subject: string;
			environment: string | null;
			outcome: "applied" | "ignored";
			request_id: string | null;
			remote_address: string | null;
			changes: {
				field: string;
				from: unknown;
				to: unknown;
			}[];
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
		AuditEvent: {
			index: number;
			id: string;
			type: string;
			time: string;
			actor: string | null;
			environment: string;
			subject: string;
			position: string;
			record_sha256: string;
		};
		AuditLog: {
			id: string;
			origin: string;
			public_key: string;
			size: number;
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
		ChangeDomain: {
			subdomains?: boolean;
			catch_all?: components["schemas"]["DomainCatchAll"];
		};
		ChangeMember: {
			role?: "owner" | "admin" | "developer" | "viewer" | "auditor";
			environments?: string[] | null;
			permissions?: "content:read"[];
		};
		/** What to change of a webhook. */
		ChangeWebhook: {
			/** The new URL of the endpoint. */
			url?: string;
			/** The new list of events to deliver. */
			events?: ("message.received" | "message.deleted" | "inbox.expired" | "inbox.deleted" | "domain.verified" | "domain.lapsed" | "key.expiring" | "quota.reached")[];
			/** Whether events are delivered. */
			state?: "active" | "disabled";
		};
		CheckedLink: {
			href: string;
			status: number | null;
			error: string | null;
		};
		ClientSupport: {
			name: string;
			support: "none" | "partial";
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
			/** The address. */
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
		/** A new inbox. */
		CreateInbox: {
			/** Its address, such as `support@staging.example.com`, in one of your domains. */
			address?: string;
			/** Instead of `address`: its local part. */
			local_part?: string;
			/** Instead of `address`: its domain. */
			domain?: string;
			/** The lifetime: a whole number and one of `m`, `h`, `d`, `w`, from one minute to the retention of the plan. */
			duration?: string;
			/** Whether reading its mail requires a password. */
			password_protected?: boolean;
			/** A name to show to people. */
			name?: string | null;
			/** Labels to find the inbox by. */
			labels?: components["schemas"]["InboxLabels"];
		};
		/** New inboxes. */
		CreateInboxes: {
			/** The number of inboxes. */
			count: number;
			/** The lifetime: a whole number and one of `m`, `h`, `d`, `w`, from one minute to the retention of the plan. */
			duration?: string;
			/** Whether reading its mail requires a password. */
			password_protected?: boolean;
			/** A name to show to people. */
			name?: string | null;
			/** Labels to find the inbox by. */
			labels?: components["schemas"]["InboxLabels"];
		};
		/** A new token for one inbox. */
		CreateInboxToken: {
			/** `read` for a token that reads the inbox and its mail; `owner` for one that may delete the inbox too. */
			access?: "read" | "owner";
			/** How long it is valid: a whole number and one of `m`, `h`, `d`, `w`, from one minute to the end of the inbox. */
			expires_in?: string;
		};
		DeletedInbox: {
			id: string;
			address: string;
			/** @constant */
			state: "deleted";
			deleted_at: string;
		};
		DeletedInboxes: {
			deleted: number;
			remaining: number;
		};
		/** A message that was deleted. */
		DeletedMessage: {
			/** Never changes and is never reused. */
			id: string;
			/** When it was deleted. */
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
			event: "message.received" | "message.deleted" | "inbox.expired" | "inbox.deleted" | "domain.verified" | "domain.lapsed" | "key.expiring" | "quota.reached" | "sample";
			inbox_id: string | null;
			message_id: string | null;
			domain_id: string | null;
			key_id: string | null;
			quota: string | null;
			replay_id: string | null;
			state: "pending" | "succeeded" | "failed" | "abandoned";
			abandoned_reason: ("inbox-ended" | "message-deleted" | "webhook-disabled" | "webhook-removed" | "replay-cancelled") | null;
			created_at: string;
			next_attempt_at: string | null;
			attempts: components["schemas"]["Attempt"][];
		};
		Domain: {
			id: string;
			name: string;
			environment: string;
			state: "pending" | "verified" | "failed" | "lapsed";
			hosted: boolean;
			subdomains: boolean;
			name_taken: boolean;
			records: components["schemas"]["DomainRecord"][];
			catch_all: components["schemas"]["DomainCatchAll"];
			created_at: string;
			verified_at: string | null;
			checked_at: string | null;
		};
		DomainCatchAll: {
			action: "reject" | "create" | "deliver";
			inbox_id?: string;
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
		DomainRecord: {
			type: "TXT" | "MX";
			name: string;
			zone_name: string;
			value: string;
			priority: number | null;
			status: "missing" | "invalid" | "valid";
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
		EndedInbox: {
			id: string;
			address: string;
			state: "deleted" | "expired";
			labels: components["schemas"]["InboxLabels"];
			created_at: string;
			ended_at: string;
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
		Erasure: {
			inbox_id: string;
			state: "deleted" | "expired";
			ended_at: string;
			actor: string | null;
			erased_at: string;
			copies_gone_by: string;
			event_id: string;
			log_id: string;
			index: number;
			leaf: string;
			record: string;
			proof: string;
			does_not_prove: string[];
		};
		Event: {
			id: string;
			type: "inbox.created" | "inbox.changed" | "token.issued" | "token.revoked" | "faults.set" | "message.received" | "message.dropped" | "message.deleted" | "inbox.expired" | "inbox.deleted";
			time: string;
			inbox_id: string;
			message_id: string | null;
			key_id: string | null;
			actor: string | null;
			changed: ("duration" | "name" | "labels")[] | null;
			position: components["schemas"]["Position"];
			size: number | null;
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
		EventDomain: {
			id: string;
			name: string;
			environment: string;
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
		EventKey: {
			id: string;
			name: string;
			environment: string;
			expires_at: string;
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
			/** Properties that are null because the event would exceed 256 kB. */
			truncated?: ("html" | "visible_text" | "text" | "headers")[];
		};
		EventQuota: {
			name: "inboxes" | "inboxes-per-day" | "messages-per-day" | "stored-bytes" | "webhooks" | "domains" | "members";
			environment: string | null;
			key_id: string | null;
			limit: number;
			used: number;
			resets_at: string | null;
			percent: 80 | 100;
		};
		/** A match of the expression `extract` in a mail. */
		Extracted: {
			/** The match. */
			text: string;
			/** What the capturing groups matched, also the named ones, in their order. */
			groups: (string | null)[];
		};
		Fault: {
			detail: string;
			pointer?: string;
			parameter?: string;
			header?: string;
		};
		/** A header of a mail. */
		Header: {
			/** The name as written. */
			name: string;
			/** The value, decoded and unfolded. */
			value: string;
		};
		HostedDomain: {
			hosted: boolean;
			environment?: string;
			subdomains?: boolean;
			catch_all?: components["schemas"]["DomainCatchAll"];
		};
		HtmlCheck: {
			supported_percent: number;
			warnings: components["schemas"]["HtmlWarning"][];
		};
		HtmlPosition: {
			line: number;
			column: number;
		};
		HtmlWarning: {
			feature: {
				slug: string;
				title: string;
				url: string;
			};
			where: {
				count: number;
				positions: components["schemas"]["HtmlPosition"][];
			};
			clients: components["schemas"]["ClientSupport"][];
		};
		/** An address that receives mail for a limited time. */
		Inbox: {
			/** Never changes and is never reused. */
			id: string;
			/** The address. */
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
		/** A fault on purpose. */
		InboxFault: {
			/** When it happens: at RCPT TO, after the content of the mail, or once the mail is accepted. */
			stage: "rcpt" | "data" | "after_accept";
			/** `reject` and `delay` at `rcpt` and `data`; `drop` and `duplicate` at `after_accept`: the sender gets its 250, and the mail is lost, or arrives twice. */
			action: "reject" | "delay" | "drop" | "duplicate";
			/** With `reject`: the reply code. */
			code?: number;
			/** With `reject`: the enhanced status code (RFC 3463). */
			enhanced_code?: string;
			/** With `reject`: the text of the reply. */
			text?: string;
			/** With `delay`: how long the reply is delayed, in milliseconds. */
			delay_ms?: number;
			/** Only at the first n attempts of each pair of sender and recipient. */
			first_n?: number;
			/** Only at every nth attempt. */
			every_n?: number;
			/** Only with this probability. */
			probability?: number;
			/** With `probability`: the attempts that are chosen depend only on this number. */
			seed?: number;
		};
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
		InboxTokenWithSecret: {
			id: string;
			access: "read" | "owner";
			expires_at: string;
			created_at: string;
			token: string;
		};
		/** A mail. */
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
		Invitation: {
			id: string;
			email: string | null;
			role: "owner" | "admin" | "developer" | "viewer" | "auditor";
			environments: string[] | null;
			permissions: "content:read"[];
			invited_by: string;
			state: "pending" | "accepted" | "revoked" | "expired";
			member_id: string | null;
			created_at: string;
			expires_at: string;
		};
		InvitationWithUrl: {
			id: string;
			email: string | null;
			role: "owner" | "admin" | "developer" | "viewer" | "auditor";
			environments: string[] | null;
			permissions: "content:read"[];
			invited_by: string;
			state: "pending" | "accepted" | "revoked" | "expired";
			member_id: string | null;
			created_at: string;
			expires_at: string;
			url: string;
			mailed: boolean;
		};
		InviteMember: {
			email: string;
			role: "owner" | "admin" | "developer" | "viewer" | "auditor";
			environments?: string[] | null;
			permissions?: "content:read"[];
			expires_in?: string;
		};
		IssueKey: {
			name: string;
			environment: string;
			scopes?: ("inboxes" | "read" | "audit" | "admin" | "operator")[];
			owner?: "service" | "personal";
			rate_limit?: number | null;
			expires_at?: string | null;
		};
		Key: {
			id: string;
			name: string;
			environment: string;
			scopes: ("inboxes" | "read" | "audit" | "admin" | "operator")[];
			prefix: string;
			created_at: string;
			owner: "service" | "personal";
			member_id: string | null;
			created_by: string | null;
			expires_at: string | null;
			last_used_at: string | null;
			state: "active" | "revoked" | "expired";
			rate_limit: number | null;
			usage: components["schemas"]["KeyUsage"] | null;
		};
		/** The event `key.expiring`. */
		KeyExpiringEvent: {
			/**
			 * The type of the event.
			 * @constant
			 */
			type: "key.expiring";
			/** When it happened. */
			timestamp: string;
			data: components["schemas"]["EventKey"];
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
			owner: "service" | "personal";
			member_id: string | null;
			created_by: string | null;
			expires_at: string | null;
			last_used_at: string | null;
			state: "active" | "revoked" | "expired";
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
			max_inboxes_per_day: number;
			max_messages_per_day: number;
			max_stored_bytes: number;
			max_webhooks: number;
			max_domains: number;
			max_members: number;
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
		Member: {
			id: string;
			email: string | null;
			role: "owner" | "admin" | "developer" | "viewer" | "auditor";
			environments: string[] | null;
			permissions: "content:read"[];
			invited_by: string;
			issuer: string | null;
			created_at: string;
		};
		/** A received mail, parsed. */
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
			/** Only with `extract`: its different matches in the subject, the text and the visible text, in this order. */
			extracted?: components["schemas"]["Extracted"][];
		};
		/** The messages of a label. */
		MessageCount: {
			/** The number of messages that the inboxes of the label have received. */
			count: number;
			/** The number of inboxes. */
			inboxes: number;
			/** A position before all messages that arrive later. */
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
		NearMiss: {
			id: string;
			inbox_id: string;
			subject: string | null;
			received_at: string;
			mismatches: string[];
		};
		OpenAccount: {
			name: string;
			plan: string;
			limits?: components["schemas"]["AccountLimits"] | null;
		};
		OwnDomain: {
			name: string;
			environment?: string;
			subdomains?: boolean;
			catch_all?: components["schemas"]["DomainCatchAll"];
		};
		PastInbox: {
			id: string;
			address: string;
			/** @constant */
			state: "active";
			duration: string;
			password_protected: boolean;
			name: string | null;
			labels: components["schemas"]["InboxLabels"];
			environment: string;
			created_at: string;
			expires_at: string;
			message_count: number;
			last_message_at: string | null;
			erased: {
				event_id: string;
				type: "message.deleted" | "inbox.expired" | "inbox.deleted";
				time: string;
			} | null;
		};
		PastMessage: {
			id: string;
			inbox_id: string;
			received_at: string;
			size: number;
			digest: string;
			erased: {
				event_id: string;
				type: "message.deleted" | "inbox.expired" | "inbox.deleted";
				time: string;
			} | null;
		};
		Position: {
			/** @constant */
			topic: "inbox-events";
			partition: number;
			offset: number;
		};
		Problem: {
			type: string;
			title: string;
			status: number;
			detail: string;
			code: "invalid-request" | "malformed-json" | "missing-api-key" | "invalid-api-key" | "revoked-api-key" | "sign-in-failed" | "not-signed-in" | "plan-lacks-api-access" | "account-suspended" | "missing-scope" | "not-invited" | "no-role" | "sign-in-with-provider" | "link-check-disabled" | "untrusted-origin" | "inbox-password-required" | "inbox-password-invalid" | "not-found" | "no-matching-message" | "method-not-allowed" | "not-acceptable" | "already-signed-in" | "idempotency-key-in-use" | "address-taken" | "inbox-full" | "not-yet-checkpointed" | "inbox-deleted" | "inbox-expired" | "history-expired" | "message-deleted" | "body-too-large" | "unsupported-media-type" | "idempotency-key-reused" | "domain-not-verified" | "html-too-complex" | "rate-limited" | "quota-exceeded" | "too-many-password-attempts" | "audit-log-contradicted" | "internal-error" | "catching-up" | "log-unavailable" | "read-model-unavailable" | "provider-unavailable" | "busy" | "too-many-streams" | "too-many-waits" | "shutting-down";
			fix: string;
			request_id: string;
			errors?: components["schemas"]["Fault"][];
			ended_at?: string;
			ended_by?: string | null;
			deleted_at?: string;
			examined?: number;
			nearest?: components["schemas"]["NearMiss"][];
			count?: number;
			expected?: number;
			too_few?: components["schemas"]["InboxMessages"][];
			too_many?: components["schemas"]["InboxMessages"][];
			quota?: "inboxes" | "inboxes-per-day" | "messages-per-day" | "stored-bytes" | "webhooks" | "domains" | "members";
			environment?: string | null;
			key_id?: string | null;
			limit?: number;
			used?: number;
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
		Quota: {
			name: "inboxes" | "inboxes-per-day" | "messages-per-day" | "stored-bytes" | "webhooks" | "domains" | "members";
			environment: string | null;
			key_id: string | null;
			limit: number;
			used: number;
			resets_at: string | null;
		};
		/** The event `quota.reached`. */
		QuotaReachedEvent: {
			/**
			 * The type of the event.
			 * @constant
			 */
			type: "quota.reached";
			/** When it happened. */
			timestamp: string;
			data: components["schemas"]["EventQuota"];
		};
		RefusedMail: {
			time: string;
			recipient: string;
			sender: string;
			code: number;
			reason: string;
			count: number;
		};
		RegisterInboxWebhook: {
			url: string;
			events?: ("message.received" | "message.deleted" | "inbox.expired" | "inbox.deleted")[];
			start_from?: string;
		};
		/** A new webhook of an environment. */
		RegisterWebhook: {
			/** The URL of the endpoint: http or https, without user name, password or fragment. */
			url: string;
			/** The events to deliver. */
			events?: ("message.received" | "message.deleted" | "inbox.expired" | "inbox.deleted" | "domain.verified" | "domain.lapsed" | "key.expiring" | "quota.reached")[];
			/** The first event to deliver: `now`, `beginning` for all existing events, or a time (RFC 3339) for the events since then. */
			start_from?: string;
		};
		RemovedMember: {
			id: string;
			email: string | null;
			role: "owner" | "admin" | "developer" | "viewer" | "auditor";
			environments: string[] | null;
			permissions: "content:read"[];
			invited_by: string;
			issuer: string | null;
			created_at: string;
			revoked_keys: string[];
			service_keys: string[];
		};
		Replay: {
			id: string;
			webhook_id: string;
			state: "running" | "completed" | "cancelled";
			requested: number;
			done: number;
			created_at: string;
		};
		ReplayOfDeliveries: {
			delivery_ids: string[];
			only_failed?: boolean;
		};
		ReplayOfRange: {
			from: string;
			to: string;
			only_failed?: boolean;
		};
		/** Which events to send again. */
		RequestReplay: components["schemas"]["ReplayOfRange"] | components["schemas"]["ReplayOfDeliveries"];
		/** How long the new link is valid. */
		ResendInvitation: {
			/** How long the link is valid: 1 to 30 days. */
			expires_in?: string;
		};
		/** A token that was revoked. */
		RevokedInboxToken: {
			/** The id of the token. */
			id: string;
			/** When it was revoked. */
			revoked_at: string;
		};
		RotateKey: {
			grace?: string;
			expires_at?: string | null;
		};
		RotateWebhookSecret: {
			grace?: string;
		};
		RunDifference: {
			kind: "duplicate" | "unexpected" | "late" | "altered" | "reordered";
			recipient: string;
			id: string | null;
			message_id: string;
			inbox_id: string;
			received_at: string;
			duplicate_of?: string;
			line?: number;
			sent_at?: string;
			delay_ms?: number;
			late_by_ms?: number;
			sha256?: string;
			received_sha256?: string;
			after_line?: number;
		};
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
			faults: {
				dropped: number;
				duplicated: number;
			};
			visible_ms: components["schemas"]["QuantilesAndMax"] | null;
		};
		/** All faults, in the order in which they are checked. */
		SetFaults: components["schemas"]["InboxFault"][];
		SetQuota: {
			limit: number | null;
			environment?: string | null;
			key_id?: string | null;
		};
		SetSignIn: {
			sign_in: "any" | "provider";
		};
		/** What to change of an inbox. */
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
		Version: {
			version: string;
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
		/** An endpoint to which the events of an inbox or of an environment are delivered. */
		Webhook: {
			/** The id of the webhook. */
			id: string;
			/** The URL of the endpoint. */
			url: string;
			/** The inbox whose events are delivered; null for all inboxes of the environment. */
			inbox_id: string | null;
			/** The events that are delivered. */
			events: ("message.received" | "message.deleted" | "inbox.expired" | "inbox.deleted" | "domain.verified" | "domain.lapsed" | "key.expiring" | "quota.reached")[];
			/** Whether events are delivered. */
			state: "active" | "disabled";
			/** When it was registered. */
			created_at: string;
			/** Why it is disabled: `by-request`; `gone` if its endpoint answered 410; `failing` after 5 days in which every attempt failed. */
			disabled_reason: ("by-request" | "gone" | "failing") | null;
		};
		WebhookWithSecret: {
			id: string;
			url: string;
			inbox_id: string | null;
			events: ("message.received" | "message.deleted" | "inbox.expired" | "inbox.deleted" | "domain.verified" | "domain.lapsed" | "key.expiring" | "quota.reached")[];
			state: "active" | "disabled";
			created_at: string;
			disabled_reason: ("by-request" | "gone" | "failing") | null;
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
				/** A label `<name>:<value>` that they must have. */
				label?: string[];
				/** Only the newest inbox with this address, if it is in that state. */
				address?: string;
				/** The maximum number of items on a page. */
				limit?: number;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
			};
		};
	};
	waitForInboxMessage: {
		parameters: {
			query?: {
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
				/** A header `<name>:<text>`: a header of that name must contain the text, in upper or lower case. */
				header?: string[];
				/** The earliest `received_at` (RFC 3339). */
				since?: string;
				/** The end of the time in which it was received, exclusive (RFC 3339). */
				until?: string;
				/** `true`: it must have a one-time code. */
				has_code?: boolean;
				/** `true`: it must have a link. */
				has_link?: boolean;
				/** A regular expression in the syntax of RE2, searched in the subject, the text and the visible text. */
				extract?: string;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
			};
		};
	};
	listInboxMessages: {
		parameters: {
			query?: {
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
				/** A header `<name>:<text>`: a header of that name must contain the text, in upper or lower case. */
				header?: string[];
				/** The earliest `received_at` (RFC 3339). */
				since?: string;
				/** The end of the time in which it was received, exclusive (RFC 3339). */
				until?: string;
				/** `true`: it must have a one-time code. */
				has_code?: boolean;
				/** `true`: it must have a link. */
				has_link?: boolean;
				/** A regular expression in the syntax of RE2, searched in the subject, the text and the visible text. */
				extract?: string;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
				/** The maximum number of items on a page. */
				limit?: number;
			};
		};
	};
	getInboxMessage: {
		parameters: {
			query?: {
				/** Whether the answer includes the source. */
				raw?: boolean;
				/** A regular expression in the syntax of RE2, searched in the subject, the text and the visible text. */
				extract?: string;
			};
		};
	};
	waitForMessage: {
		parameters: {
			query?: {
				/** A label `<name>:<value>` that the inbox must have. */
				label?: string[];
				/** Wait until the inboxes of one `label` have received this number of messages, counting deleted ones. */
				count?: number;
				/** With `count`: whether more messages are allowed. */
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
				/** A header `<name>:<text>`: a header of that name must contain the text, in upper or lower case. */
				header?: string[];
				/** The earliest `received_at` (RFC 3339). */
				since?: string;
				/** The end of the time in which it was received, exclusive (RFC 3339). */
				until?: string;
				/** `true`: it must have a one-time code. */
				has_code?: boolean;
				/** `true`: it must have a link. */
				has_link?: boolean;
				/** A regular expression in the syntax of RE2, searched in the subject, the text and the visible text. */
				extract?: string;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
			};
		};
	};
	listMessages: {
		parameters: {
			query?: {
				/** Words, "phrases" and filters such as `from:app`, `label:run:42` and `has:code`, which must all match; `-` excludes. */
				q?: string;
				/** A label `<name>:<value>` that the inbox must have. */
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
				/** A header `<name>:<text>`: a header of that name must contain the text, in upper or lower case. */
				header?: string[];
				/** The earliest `received_at` (RFC 3339). */
				since?: string;
				/** The end of the time in which it was received, exclusive (RFC 3339). */
				until?: string;
				/** `true`: it must have a one-time code. */
				has_code?: boolean;
				/** `true`: it must have a link. */
				has_link?: boolean;
				/** A regular expression in the syntax of RE2, searched in the subject, the text and the visible text. */
				extract?: string;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
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
				/** The milliseconds after `sent_at` within which a mail must be received. */
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
			};
		};
	};
	listActivity: {
		parameters: {
			query?: {
				/** The maximum number of items on a page. */
				limit?: number;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
				/** The id of who did it. */
				actor?: string;
				/** A type, or its first part, such as `member`. */
				type?: string;
				/** An environment. */
				environment?: string;
				/** The id of what was changed. */
				subject?: string;
				/** Only those at this time or later (RFC 3339). */
				from?: string;
				/** Only those before this time (RFC 3339). */
				to?: string;
			};
		};
	};
	listAuditEvents: {
		parameters: {
			query?: {
				/** The maximum number of items on a page. */
				limit?: number;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
				/** The id of who did it. */
				actor?: string;
				/** A type, or its first part, such as `member`. */
				type?: string;
				/** An environment. */
				environment?: string;
				/** The id of what was changed. */
				subject?: string;
				/** Only those at this time or later (RFC 3339). */
				from?: string;
				/** Only those before this time (RFC 3339). */
				to?: string;
			};
		};
	};
	listAuditRecords: {
		parameters: {
			query?: {
				/** The index of the first leaf. */
				from?: number;
				/** The index after that of the last leaf, at most 256 more. */
				to?: number;
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
			};
		};
	};
	streamEvents: {
		parameters: {
			query?: {
				/** A label `<name>:<value>` that the inbox must have. */
				label?: string[];
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
			};
		};
	};
	listMembers: {
		parameters: {
			query?: {
				/** The maximum number of items on a page. */
				limit?: number;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
			};
		};
	};
	listInvitations: {
		parameters: {
			query?: {
				/** The maximum number of items on a page. */
				limit?: number;
				/** Oldest or newest first. */
				order?: "asc" | "desc";
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
				/** Only usage with the label `<name>:<value>`. */
				label?: string[];
				/** The start of the span (RFC 3339). */
				from?: string;
				/** The end of the span, exclusive. */
				to?: string;
			};
		};
	};
	reportUsage: {
		parameters: {
			query: {
				/** Only usage with the label `<name>:<value>`. */
				label: string[];
				/** The start of the span (RFC 3339). */
				from?: string;
				/** The end of the span, exclusive. */
				to?: string;
			};
		};
	};
	exportUsage: {
		parameters: {
			query?: {
				/** The format of the file. */
				format?: "parquet" | "ndjson" | "csv";
				/** The rows of the file: figures by key, route or webhook, each minute, hour or day; or the events of one kind. */
				table?: "usage" | "usage_minute" | "usage_hour" | "usage_day" | "routes_minute" | "webhooks_minute" | "requests" | "inbox_events" | "mail_events" | "webhook_events";
				/** The start of the span (RFC 3339). */
				from?: string;
				/** The end of the span, exclusive. */
				to?: string;
			};
		};
	};
}
