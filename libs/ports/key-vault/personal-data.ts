import { createHmac } from 'node:crypto'
import { nameOfEmail, type PersonalText } from '#libs/domain/account/personal-data.js'
import type { AccountId, MemberId } from '#libs/domain/ids/typeid.js'
import { isOfMasterKey } from '#libs/domain/webhook/events.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import { KeyVaultUnavailableError, type KeyVault } from './key-vault.js'
import type { DerivedKeys, WebhookSecrets } from './master-key.js'
import { seal, unseal } from './sealing.js'

/** Seals personal data with the key of the account or member that it belongs to, and opens it. */
export class PersonalData {
  constructor(
    private readonly vault: Pick<KeyVault, 'create' | 'find'>,
    private readonly keys: DerivedKeys & Pick<WebhookSecrets, 'openUrl'>,
  ) {}

  /** Throws KeyForgottenError if the owner's data was erased, and KeyVaultUnavailableError. */
  async seal(owner: AccountId | MemberId, text: string): Promise<Exclude<PersonalText, string>> {
    const found = await this.vault.find(owner)
    const key = found.state === 'known' ? found.key : await this.vault.create(owner)
    return { sealed: seal(key, contextOf(owner), Buffer.from(text)), hash: null }
  }

  async sealEmail(owner: MemberId, email: string): Promise<PersonalText> {
    const [hash = null] = this.hashesOf(email)
    return { ...(await this.seal(owner, email)), hash }
  }

  /** An IP address as events have it: sealed, in base64; empty if it can't be sealed, so that the event is recorded nevertheless. */
  async sealAddress(owner: AccountId, address: string): Promise<string> {
    const stored = await this.seal(owner, address).catch(() => null)
    return stored === null ? '' : Buffer.from(stored.sealed).toString('base64')
  }

  /** Null if it was erased or not stored. Throws KeyVaultUnavailableError. */
  async openAddress(owner: AccountId, stored: string): Promise<string | null> {
    if (stored === '') return null
    // Base64 has neither of them, and every IP address one.
    if (/[.:]/.test(stored)) return stored
    return this.open(owner, { sealed: Buffer.from(stored, 'base64'), hash: null })
  }

  /** Null if it was erased. Throws KeyVaultUnavailableError. */
  async open(owner: AccountId | MemberId, stored: PersonalText): Promise<string | null> {
    if (typeof stored === 'string') return stored
    const found = await this.vault.find(owner)
    if (found.state === 'forgotten') return null
    if (found.state === 'unknown') throw new KeyVaultUnavailableError(`the key of ${owner} is not found yet`)
    return unseal(found.key, contextOf(owner), stored.sealed).toString()
  }

  /** Null if it was erased. Throws KeyVaultUnavailableError, and MasterKeyMissingError for a URL sealed with a master key. */
  async openUrl({ id, accountId, url }: Pick<Webhook, 'id' | 'accountId' | 'url'>): Promise<string | null> {
    return isOfMasterKey(url) ? this.keys.openUrl(id, url) : this.open(accountId, url)
  }

  /** What the address may be found by, whichever master key was current when it was stored. */
  namesOfEmail(email: string): string[] {
    return [...this.hashesOf(email), nameOfEmail(email)]
  }

  /** The first one is of the current master key. */
  private hashesOf(email: string): string[] {
    return this.keys
      .deriveKeys('find email addresses')
      .map((key) => createHmac('sha256', key).update(email.toLowerCase()).digest('hex'))
  }
}

function contextOf(owner: AccountId | MemberId): string {
  return `personal-data:${owner}`
}
