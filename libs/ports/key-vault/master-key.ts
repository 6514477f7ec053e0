import { createHash } from 'node:crypto'
import type { InboxId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { SealedSecret } from '#libs/domain/webhook/events.js'
import { seal, secretKey, SECRET_KEY_BYTES, unseal, type SecretKey } from './seal.js'

/** An inbox's key as it may be stored: sealed with the master key that `masterKeyId` names. */
export interface WrappedKey {
  masterKeyId: string
  wrapped: Uint8Array
}

/**
 * The keys that wrap inbox keys and seal the secrets and URLs of webhooks. The first serves what is new; the others, retired
 * ones, still open what they wrapped and sealed.
 */
export class MasterKeys {
  private readonly byId: ReadonlyMap<string, SecretKey>
  private readonly currentId: string

  private constructor(
    private readonly currentKey: SecretKey,
    retired: readonly SecretKey[],
  ) {
    this.byId = new Map([currentKey, ...retired].map((key) => [idOf(key), key]))
    this.currentId = idOf(currentKey)
  }

  /** Reads keys of 32 bytes in base64, separated by commas, the current one first; null if one is none. */
  static parse(text: string): MasterKeys | null {
    const [current, ...retired] = text.split(',').map(parseKey)
    if (current == null || retired.includes(null)) return null
    return new MasterKeys(
      current,
      retired.filter((key) => key !== null),
    )
  }

  /** Tells which one serves new inboxes. */
  get current(): string {
    return this.currentId
  }

  has(masterKeyId: string): boolean {
    return this.byId.has(masterKeyId)
  }

  /** Throws MasterKeyMissingError if that master key is not among these. */
  mustHave(masterKeyId: string): void {
    if (!this.has(masterKeyId)) throw new MasterKeyMissingError(masterKeyId)
  }

  wrap(inboxId: InboxId, key: SecretKey): WrappedKey {
    return { masterKeyId: this.currentId, wrapped: seal(this.currentKey, wrapContext(inboxId), key) }
  }

  /** Throws MasterKeyMissingError if the master key that wrapped it is not among these. */
  unwrap(inboxId: InboxId, { masterKeyId, wrapped }: WrappedKey): SecretKey {
    return secretKey(unseal(this.keyNamed(masterKeyId), wrapContext(inboxId), wrapped))
  }

  /** What is sealed for one webhook opens for no other. */
  sealSecret(webhookId: WebhookId, secret: Uint8Array): SealedSecret {
    return { masterKeyId: this.currentId, sealed: seal(this.currentKey, secretContext(webhookId), secret) }
  }

  /** Throws MasterKeyMissingError if the master key that sealed it is not among these. */
  openSecret(webhookId: WebhookId, { masterKeyId, sealed }: SealedSecret): Buffer {
    return unseal(this.keyNamed(masterKeyId), secretContext(webhookId), sealed)
  }

  /** What is sealed for one webhook opens for no other, and not as its secret. */
  sealUrl(webhookId: WebhookId, url: string): SealedSecret {
    return {
      masterKeyId: this.currentId,
      sealed: seal(this.currentKey, urlContext(webhookId), Buffer.from(url)),
    }
  }

  /** Throws MasterKeyMissingError if the master key that sealed it is not among these. */
  openUrl(webhookId: WebhookId, { masterKeyId, sealed }: SealedSecret): string {
    return unseal(this.keyNamed(masterKeyId), urlContext(webhookId), sealed).toString()
  }

  private keyNamed(masterKeyId: string): SecretKey {
    const master = this.byId.get(masterKeyId)
    if (master === undefined) throw new MasterKeyMissingError(masterKeyId)
    return master
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
  const bytes = Buffer.from(text.trim(), 'base64')
  return bytes.length === SECRET_KEY_BYTES ? secretKey(bytes) : null
}

/** Tells master keys apart without telling anything of them. */
function idOf(key: SecretKey): string {
  return createHash('sha256').update('mayfly master key id').update(key).digest('hex').slice(0, 16)
}

function wrapContext(inboxId: InboxId): string {
  return `inbox-key:${inboxId}`
}

function secretContext(webhookId: WebhookId): string {
  return `webhook-secret:${webhookId}`
}

function urlContext(webhookId: WebhookId): string {
  return `webhook-url:${webhookId}`
}
