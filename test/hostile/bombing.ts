import { fork } from 'node:child_process'
import { once } from 'node:events'
import { as, issueKey, openAccount } from '#test/harness/accounts.js'
import { createInbox, type InboxJson, type Target } from '#test/harness/client.js'
import type { BomberOrder } from './bomber.js'

export interface Bombing {
  /** The account that the bombs are sent to. */
  target: Target
  inboxes: readonly InboxJson[]
  accepted(): number
  /** Resolves once nothing is sent any more. */
  stop(): Promise<void>
}

/** Sends dear mails to inboxes of an account of their own until it is stopped. `operator` may open accounts. */
export async function startBombing(
  operator: Target,
  { connections, inboxes: count }: { connections: number; inboxes: number },
): Promise<Bombing> {
  const { key } = await openAccount(operator, { name: 'Bombs', plan: 'enterprise' })
  const target = as(operator, await issueKey(as(operator, key)))
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
