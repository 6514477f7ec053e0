import { fork } from 'node:child_process'
import { once } from 'node:events'
import { withKey, issueKey, openAccount } from '#test/harness/accounts.js'
import { createInbox, type InboxJson, type Target } from '#test/harness/client.js'
import type { BomberOrder } from './bomber.js'

export interface Bombing {
  /** The account that gets the bombs. */
  target: Target
  inboxes: readonly InboxJson[]
  accepted(): number
  /** Resolves once no more bombs are sent. */
  stop(): Promise<void>
}

/** Sends bombs to inboxes of a new account until it is stopped. `operator` must have the scope `operator`. */
export async function startBombing(
  operator: Target,
  { connections, inboxes: count }: { connections: number; inboxes: number },
): Promise<Bombing> {
  const { key } = await openAccount(operator, { name: 'Bombs', plan: 'enterprise' })
  const target = withKey(operator, await issueKey(withKey(operator, key)))
  const inboxes = await Promise.all(Array.from({ length: count }, () => createInbox(target)))
  const order: BomberOrder = {
    smtpPort: target.smtpPort,
    connections,
    addresses: inboxes.map(({ address }) => address),
  }
  const child = fork(new URL('./bomber.js', import.meta.url), [JSON.stringify(order)])
  const exited = once(child, 'exit')
  let accepted = 0
  child.on('message', () => (accepted += 1))
  return {
    target,
    inboxes,
    accepted: () => accepted,
    async stop() {
      if (child.connected) child.disconnect()
      await exited
    },
  }
}
