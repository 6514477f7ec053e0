import { createHash, hash, hkdfSync } from 'node:crypto'
import { signingKey, type SigningKey } from '#libs/domain/audit/checkpoint.js'
import type { LogId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { SealedSecret } from '#libs/domain/webhook/events.js'
import { NamedError } from '#libs/runtime/errors.js'
import type { KeyOwner } from './key-vault.js'
import { seal, secretKey, unseal, type SecretKey } from './sealing.js'

/*
 * Master keys, which seal the keys of the vault and the secrets of webhooks; and the hash of API keys and
 * passwords.
 */

/** The key of an owner as it may be stored: sealed with the master key that `masterKeyId` names. */
export interface WrappedKey {
  masterKeyId: string
  wrapped: Uint8Array
}

/**
 * Keeps the secrets that webhooks sign with, and the URLs of earlier events, unreadable in the log and the views. Opening
 * throws MasterKeyMissingError if the master key that sealed the bytes is no longer configured, and SealBrokenError if
 * they were sealed for another webhook or another purpose.
 */
export type WebhookSecrets = Pick<MasterKeys, 'sealSecret' | 'openSecret' | 'openUrl'>

/** Derives keys for other uses than sealing, such as signing tokens, so that these need no setting of their own. */
export type DerivedKeys = Pick<MasterKeys, 'deriveKey' | 'deriveKeys'>

/** A value that is sealed in one context can't be opened in another. */
const CONTEXT = {
  key: (owner: KeyOwner) => `inbox-key:${owner}`,
  secret: (webhookId: WebhookId) => `webhook-secret:${webhookId}`,
  url: (webhookId: WebhookId) => `webhook-url:${webhookId}`,
}

/**
 * The configured master keys. The first, current one seals everything new. The others are retired: they only open what
 * they sealed before.
 */
export class MasterKeys {
  private readonly byId: ReadonlyMap<string, SecretKey>
  /** The id of the current key. */
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

  /** Throws MasterKeyMissingError if that master key is not configured. */
  require(masterKeyId: string): void {
    if (!this.has(masterKeyId)) throw new MasterKeyMissingError(masterKeyId)
  }

  wrap(owner: KeyOwner, key: SecretKey): WrappedKey {
    const { masterKeyId, sealed } = this.seal(CONTEXT.key(owner), key)
    return { masterKeyId, wrapped: sealed }
  }

  /** Throws MasterKeyMissingError if the master key that wrapped it is not configured. */
  unwrap(owner: KeyOwner, { masterKeyId, wrapped }: WrappedKey): SecretKey {
    return secretKey(this.open(CONTEXT.key(owner), { masterKeyId, sealed: wrapped }))
  }

  sealSecret(webhookId: WebhookId, secret: Uint8Array): SealedSecret {
    return this.seal(CONTEXT.secret(webhookId), secret)
  }

  openSecret(webhookId: WebhookId, sealed: SealedSecret): Buffer {
    return this.open(CONTEXT.secret(webhookId), sealed)
  }

  openUrl(webhookId: WebhookId, stored: SealedSecret): string {
    return this.open(CONTEXT.url(webhookId), stored).toString()
  }

  /**
   * The key for a purpose, the same in every process with the same current master key. Keys of different purposes are
   * independent (HKDF, RFC 5869), and reveal nothing of the master key.
   */
  deriveKey(purpose: string): SecretKey {
    return derive(this.currentKey, purpose)
  }

  /** The keys for a purpose from all configured master keys, that of the current one first. */
  deriveKeys(purpose: string): SecretKey[] {
    return [...this.byId.values()].map((masterKey) => derive(masterKey, purpose))
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

export class MasterKeyMissingError extends NamedError {
  constructor(masterKeyId: string) {
    super(
      `keys or secrets were sealed with the master key ${masterKeyId}, which is not configured: ` +
        `add it to MAYFLY_MASTER_KEY after the current one`,
    )
  }
}

function derive(masterKey: SecretKey, purpose: string): SecretKey {
  return secretKey(Buffer.from(hkdfSync('sha256', masterKey, '', `mayfly ${purpose}`, 32)))
}

/**
 * The keys that sign an audit log: one from each configured master key, the current one first. So while an earlier master key
 * is configured, who knows only its key can verify new checkpoints too.
 */
export function auditKeysOf(keys: DerivedKeys, id: LogId): SigningKey[] {
  return keys.deriveKeys(`sign the audit log ${id}`).map(signingKey)
}

/** 32 bytes in base64 (RFC 4648, section 4): 43 characters and an optional padding character. */
const BASE64_KEY = /^[A-Za-z0-9+/]{43}=?$/

function parseKey(text: string): SecretKey | null {
  // Node's decoder ignores invalid characters, and would so ignore keys that follow a wrong separator.
  if (!BASE64_KEY.test(text.trim())) return null
  return secretKey(Buffer.from(text.trim(), 'base64'))
}

/** Identifies a master key without revealing anything about it. */
function idOf(key: SecretKey): string {
  return createHash('sha256').update('mayfly master key id').update(key).digest('hex').slice(0, 16)
}

/** The hex SHA-256 that an API key or inbox password is stored as. Both are random, so no slow hash is needed. */
export function hashSecret(secret: string): string {
  return hash('sha256', secret)
}
