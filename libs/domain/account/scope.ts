export const SCOPES = ['inboxes', 'read', 'audit', 'admin', 'operator'] as const

/** What a key may do: `read` is the GETs of `inboxes`, `operator` reaches every account. */
export type Scope = (typeof SCOPES)[number]

/** Whether a holder of some scopes may do what one of the wanted scopes allows. */
export function allows(held: readonly Scope[], wanted: readonly Scope[]): boolean {
  return wanted.some((scope) => held.includes(scope))
}
