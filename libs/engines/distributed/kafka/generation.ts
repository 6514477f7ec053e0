/** What a broker knows a member by: it takes commits of the group's present generation alone. */
export interface Membership {
  memberId: string
  generation: number
}

/**
 * Which generation of its group a member is in, learnt from its heartbeats: kafkajs tells of it nowhere else. Each
 * change of the group begins the next one.
 */
export class Generation {
  private last: Membership | null = null
  private memberId: string | null = null
  /** Since the last heartbeat that told of a generation. */
  private assignments = 0
  private telling = unanswered()

  /** Resolves once a heartbeat has been answered since the last assignment; rejects if the membership ends first. */
  get known(): Promise<Membership> {
    return this.telling.promise
  }

  assigned(memberId: string): void {
    if (memberId !== this.memberId) this.end()
    if (this.last !== null && this.assignments === 0) this.telling = unanswered()
    this.memberId = memberId
    this.assignments += 1
  }

  /**
   * False if a generation may have gone by between two assignments without the member's knowing: what it has may
   * have been another's meanwhile.
   */
  heard(membership: Membership): boolean {
    const { last, assignments } = this
    // An answer may come late, while the member joins anew.
    const isOld = membership.memberId !== this.memberId || membership.generation <= (last?.generation ?? -1)
    if (isOld) return true
    this.last = membership
    this.assignments = 0
    this.telling.resolve(membership)
    return last === null ? assignments === 1 : membership.generation === last.generation + assignments
  }

  /** The membership is over. */
  end(): void {
    this.telling.reject(new Error('the membership in the group has ended'))
    this.telling = unanswered()
    this.last = null
    this.memberId = null
    this.assignments = 0
  }
}

function unanswered(): PromiseWithResolvers<Membership> {
  const telling = Promise.withResolvers<Membership>()
  telling.promise.catch(() => undefined)
  return telling
}
