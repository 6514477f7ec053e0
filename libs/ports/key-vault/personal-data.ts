import { createHmac } from 'node:crypto'
import { emailLookup, type PersonalText } from '#libs/domain/account/personal-data.js'
import type { AccountId, MemberId } from '#libs/domain/ids/typeid.js'
import { isOfMasterKey } from '#libs/domain/webhook/events.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import { KeyVaultUnavailableError, type KeyLookup, type KeyVault } from './key-vault.js'
import type { DerivedKeys, WebhookSecrets } from './master-key.js'
import { seal, unseal } from './sealing.js'

/** Whose personal data it is. */
export type PersonalOwner = AccountId | MemberId

export interface PersonalDataOptions {
  vault: Pick<KeyVault, 'create' | 'find'>
  keys: DerivedKeys & Pick<WebhookSecrets, 'openUrl'>
  /** Called if something could not be sealed or opened, and is left out for that reason. */
  onError: (error: unknown) => void
}

/** Seals personal data with the key of the account or member that it belongs to, and opens it. */
export class PersonalData {
  /** Lookups in progress, which those who need the same key share. */
  private readonly finding = new Map<PersonalOwner, Promise<KeyLookup>>()

  constructor(private readonly options: PersonalDataOptions) {}

  /** Throws KeyForgottenError if the owner's data was erased, and KeyVaultUnavailableError. */
  async seal(owner: PersonalOwner, text: string): Promise<Exclude<PersonalText, string>> {
    return { sealed: await this.sealBytes(owner, text), hash: null }
  }

  async sealEmail(owner: MemberId, email: string): Promise<PersonalText> {
    const [hash = null] = this.hashesOf(email)
    return { sealed: await this.sealBytes(owner, email), hash }
  }

  /** An IP address as events have it: sealed, in base64; empty if it can't be, so that the event is recorded anyway. */
  async sealAddress(owner: PersonalOwner, address: string): Promise<string> {
    try {
      return (await this.sealBytes(owner, address)).toString('base64')
    } catch (error) {
      this.options.onError(error)
      return ''
    }
  }

  /** Null if it was erased, was not stored or can't be opened. */
  async openAddress(owner: PersonalOwner, stored: string): Promise<string | null> {
    if (stored === '') return null
    // Plain text in earlier events: base64 has neither of them, and every IP address one.
    const isPlain = /[.:]/.test(stored)
    return this.show(owner, isPlain ? stored : { sealed: Buffer.from(stored, 'base64'), hash: null })
  }

  /** For people to read: null if it was erased or can't be opened. */
  async show(owner: PersonalOwner, stored: PersonalText): Promise<string | null> {
    try {
      return await this.open(owner, stored)
    } catch (error) {
      this.options.onError(error)
      return null
    }
  }

  /**
   * Null if it was erased. Throws KeyVaultUnavailableError, and MasterKeyMissingError if the master key that wrapped the
   * owner's key, or sealed the URL, is not configured.
   */
  async openUrl({ id, accountId, url }: Pick<Webhook, 'id' | 'accountId' | 'url'>): Promise<string | null> {
    return isOfMasterKey(url) ? this.options.keys.openUrl(id, url) : this.open(accountId, url)
  }

  /** The lookups of an address, whichever master key was current when it was stored. */
  emailLookups(email: string): string[] {
    return [...this.hashesOf(email), emailLookup(email)]
  }

  private async sealBytes(owner: PersonalOwner, text: string): Promise<Buffer> {
    const found = await this.find(owner)
    const key = found.state === 'known' ? found.key : await this.options.vault.create(owner)
    return seal(key, contextOf(owner), Buffer.from(text))
  }

  private async open(owner: PersonalOwner, stored: PersonalText): Promise<string | null> {
    const found = await this.find(owner)
    if (found.state === 'forgotten') return null
    if (typeof stored === 'string') return stored
    if (found.state === 'unknown') throw new KeyVaultUnavailableError(`the key of ${owner} is not found`)
    return unseal(found.key, contextOf(owner), stored.sealed).toString()
  }

  private find(owner: PersonalOwner): Promise<KeyLookup> {
    const finding =
      this.finding.get(owner) ?? this.options.vault.find(owner).finally(() => this.finding.delete(owner))
    this.finding.set(owner, finding)
    return finding
  }

  /** The first one is of the current master key. */
  private hashesOf(email: string): string[] {
    return this.options.keys
      .deriveKeys('find email addresses')
      .map((key) => createHmac('sha256', key).update(email.toLowerCase()).digest('hex'))
  }
}

function contextOf(owner: PersonalOwner): string {
  return `personal-data:${owner}`
}
