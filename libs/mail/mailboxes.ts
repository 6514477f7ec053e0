import type { AddressObject, HeaderValue } from 'mailparser'
import type { Mailbox } from './message.js'

/** An address header's mailboxes, those of groups among them; what has a name but no address is left out. */
export function mailboxes(value: HeaderValue | undefined): Mailbox[] {
  const found: Mailbox[] = []
  const lists = Array.isArray(value) ? value : [value]
  for (const list of lists) {
    if (isAddressObject(list)) flatten(list.value, found)
  }
  return found
}

function isAddressObject(value: unknown): value is AddressObject {
  return typeof value === 'object' && value !== null && 'value' in value && Array.isArray(value.value)
}

function flatten(entries: AddressObject['value'], found: Mailbox[]): void {
  for (const { address, name, group } of entries) {
    if (group !== undefined) flatten(group, found)
    else if (address !== undefined && address !== '') {
      found.push({ name: name === '' ? null : name.toWellFormed(), address: address.toWellFormed() })
    }
  }
}
