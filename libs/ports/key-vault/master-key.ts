import { createHash, hash } from 'node:crypto'
import type { InboxId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { SealedSecret, StoredUrl } from '#libs/domain/webhook/events.js'
import { seal, secretKey, unseal, type SecretKey } from './content.js'

/** An inbox's key as it may be stored: sealed with the master key that `masterKeyId` names. */
export interface WrappedKey {
  masterKeyId: string
  wrapped: Uint8Array
}

/** What is sealed in one context opens in no other. */
const CONTEXT = {
  inboxKey: (inboxId: InboxId) => `inbox-key:${inboxId}`,
  secret: (webhookId: WebhookId) => `webhook-secret:${webhookId}`,
  url: (webhookId: WebhookId) => `webhook-url:${webhookId}`,
}

/**
 * The keys that wrap inbox keys and seal the secrets and URLs of webhooks. The first serves what is new; the others,
 * retired ones, still open what they wrapped and sealed.
 */
export class MasterKeys {
  private readonly byId: ReadonlyMap<string, SecretKey>
  /** The id of the key that serves what is new. */
  readonly current: string

  private constructor(
    private readonly currentKey: SecretKey,
    retired: readonly SecretKey[],
  ) {
    this.byId = new Map([currentKey, ...retired].map((key) => [idOf(key), key]))
    this.current = idOf(currentKey)
  }

  /** Reads keys of 32 bytes in base64, separated by commas, the current one first; null if any is malformed. */
  static parse(text: string): MasterKeys | null {
    const texts = text.split(',')
    const keys = texts.flatMap((each) => parseKey(each) ?? [])
    const [current, ...retired] = keys
    if (current === undefined || keys.length < texts.length) return null
    return new MasterKeys(current, retired)
  }

  has(masterKeyId: string): boolean {
    return this.byId.has(masterKeyId)
  }

  /** Throws MasterKeyMissingError if that master key is not among these. */
  require(masterKeyId: string): void {
    if (!this.has(masterKeyId)) throw new MasterKeyMissingError(masterKeyId)
  }

  wrap(inboxId: InboxId, key: SecretKey): WrappedKey {
    const { masterKeyId, sealed } = this.seal(CONTEXT.inboxKey(inboxId), key)
    return { masterKeyId, wrapped: sealed }
  }

  /** Throws MasterKeyMissingError if the master key that wrapped it is not among these. */
  unwrap(inboxId: InboxId, { masterKeyId, wrapped }: WrappedKey): SecretKey {
    return secretKey(this.open(CONTEXT.inboxKey(inboxId), { masterKeyId, sealed: wrapped }))
  }

  sealSecret(webhookId: WebhookId, secret: Uint8Array): SealedSecret {
    return this.seal(CONTEXT.secret(webhookId), secret)
  }

  /** Throws MasterKeyMissingError if the master key that sealed it is not among these. */
  openSecret(webhookId: WebhookId, sealed: SealedSecret): Buffer {
    return this.open(CONTEXT.secret(webhookId), sealed)
  }

  sealUrl(webhookId: WebhookId, url: string): SealedSecret {
    return this.seal(CONTEXT.url(webhookId), Buffer.from(url))
  }

  /** Throws MasterKeyMissingError if the master key that sealed it is not among these. */
  openUrl(webhookId: WebhookId, sealed: SealedSecret): string {
    return this.open(CONTEXT.url(webhookId), sealed).toString()
  }

  private seal(context: string, plaintext: Uint8Array): SealedSecret {
    return { masterKeyId: this.current, sealed: seal(this.currentKey, context, plaintext) }
  }

  private open(context: string, { masterKeyId, sealed }: SealedSecret): Buffer {
    const masterKey = this.byId.get(masterKeyId)
    if (masterKey === undefined) throw new MasterKeyMissingError(masterKeyId)
    return unseal(masterKey, context, sealed)
  }
}

export class MasterKeyMissingError extends Error {
  override readonly name = 'MasterKeyMissingError'

  constructor(masterKeyId: string) {
    super(
      `keys or secrets were sealed by the master key ${masterKeyId}, which is not configured: ` +
        `add it to MAYFLY_MASTER_KEY behind the current one`,
    )
  }
}

/** 32 bytes in base64 (RFC 4648, section 4); 43 characters and one of padding, which may be left out. */
const BASE64_KEY = /^[A-Za-z0-9+/]{43}=?$/

function parseKey(text: string): SecretKey | null {
  // Decoding alone would pass over what is not base64, and with it over keys behind a wrong separator.
  if (!BASE64_KEY.test(text.trim())) return null
  return secretKey(Buffer.from(text.trim(), 'base64'))
}

/** Tells master keys apart without revealing anything about them. */
function idOf(key: SecretKey): string {
  return createHash('sha256').update('mayfly master key id').update(key).digest('hex').slice(0, 16)
}

/**
 * Keeps what webhooks sign with, and where they post to, unreadable in the log and the views. Opening throws
 * MasterKeyMissingError if the master key that sealed it is no longer configured, and SealBrokenError if it was sealed
 * for another webhook or another use.
 */
export interface WebhookSecrets {
  seal(webhookId: WebhookId, secret: Uint8Array): SealedSecret
  open(webhookId: WebhookId, sealed: SealedSecret): Buffer
  sealUrl(webhookId: WebhookId, url: string): SealedSecret
  openUrl(webhookId: WebhookId, stored: StoredUrl): string
}

export function webhookSecrets(
  masterKeys: Pick<MasterKeys, 'sealSecret' | 'openSecret' | 'sealUrl' | 'openUrl'>,
): WebhookSecrets {
  return {
    seal: (webhookId, secret) => masterKeys.sealSecret(webhookId, secret),
    open: (webhookId, sealed) => masterKeys.openSecret(webhookId, sealed),
    sealUrl: (webhookId, url) => masterKeys.sealUrl(webhookId, url),
    openUrl: (webhookId, stored) =>
      typeof stored === 'string' ? stored : masterKeys.openUrl(webhookId, stored),
  }
}

/** How a secret is stored: hex SHA-256. Secrets are random, so no slow hash is needed. */
export function hashSecret(secret: string): string {
  return hash('sha256', secret)
}
