import type { Engine } from '#libs/engines/engine.js'
import { measureWholeBacklog } from '#libs/ports/read-model/backlog.js'
import { UnavailableError } from '#libs/runtime/fault/unavailable.js'
import { beforeDeadline, DeadlineError } from '#libs/runtime/timing/deadline.js'

export interface Readiness {
  status: 'ready' | 'starting' | 'ending' | 'catching-up' | 'unavailable'
  /** Records on the log that the views don't show yet, where that is known. */
  backlog?: number
}

/** Whoever probes does not wait for long. */
const LOOK_WITHIN_MS = 2_000

/** Views that catch up wait for these roles, and not the other way round. */
const WORK_THE_BACKLOG_OFF: ReadonlySet<string> = new Set(['projector', 'lifecycle', 'webhooks', 'analytics'])

/** Whether a process that has started can do its part: log and views answer, and know enough for its role. */
export async function measureReadiness(
  role: string,
  { log, inboxes }: Pick<Engine, 'log' | 'inboxes'>,
): Promise<Readiness> {
  try {
    const { records: backlog, isCatchingUp } = await beforeDeadline(
      LOOK_WITHIN_MS,
      measureWholeBacklog(log, inboxes),
    )
    const mustWait = isCatchingUp && !WORK_THE_BACKLOG_OFF.has(role)
    return { status: mustWait ? 'catching-up' : 'ready', backlog }
  } catch (error) {
    if (error instanceof UnavailableError || error instanceof DeadlineError) return { status: 'unavailable' }
    throw error
  }
}
