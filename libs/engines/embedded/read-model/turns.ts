import type { WebhookId } from '#libs/domain/ids/typeid.js'

/** Beyond it all are as new. */
const MOST_REMEMBERED = 50_000

/** Whose turn it is where more is due than is claimed at once. */
export class Turns {
  private readonly lastOf = new Map<WebhookId, number>()
  private turn = 0

  /** Those first that had no turn for longest; among those that had none, in the order in which they came. */
  inTurn<Due>(due: readonly Due[], idOf: (each: Due) => WebhookId): Due[] {
    const lastOf = (each: Due) => this.lastOf.get(idOf(each)) ?? 0
    return due.toSorted((one, other) => lastOf(one) - lastOf(other))
  }

  /** One that has had all that was due to it is as new when there is something again. */
  had(id: WebhookId, isMoreDue: boolean): void {
    if (this.lastOf.size >= MOST_REMEMBERED) this.lastOf.clear()
    this.turn += 1
    if (isMoreDue) this.lastOf.set(id, this.turn)
    else this.lastOf.delete(id)
  }
}
