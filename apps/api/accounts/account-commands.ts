import { Injectable } from '@nestjs/common'
import type { Account } from '#libs/domain/account/account.js'
import { decide, type AccountCommand, type Refusal } from '#libs/domain/account/decide.js'
import { isId } from '#libs/domain/ids/typeid.js'
import type { Attribution } from '#libs/ports/event-log/cloud-event.js'
import { Views } from '../views.js'
import { VisibleRecorder } from '../visible-recorder.js'
import { invalid, Problem, noResource, overGrace, planLacksApiAccess } from '../http/problems.js'

@Injectable()
export class AccountCommands {
  constructor(
    private readonly views: Views,
    private readonly recorder: VisibleRecorder,
  ) {}

  /** Throws not-found. */
  async find(id: string): Promise<Account> {
    const account = isId('acc', id) ? await this.views.readAccounts((accounts) => accounts.account(id)) : null
    if (account === null) throw noResource('account', id)
    return account
  }

  /** Resolves once the change is durable and applies on this instance. Throws a Problem if the command is refused. */
  async execute(
    state: Parameters<typeof decide>[0],
    command: AccountCommand,
    by: Omit<Attribution, 'accountId'>,
  ): Promise<void> {
    const { events, refusal } = decide(state, command)
    if (refusal !== null) throw refused(refusal, command)
    await this.recorder.record(events, { ...by, accountId: command.accountId })
  }
}

function refused(
  refusal: Refusal,
  { accountId, keyId = '' }: Pick<AccountCommand, 'accountId'> & { keyId?: string },
): Problem {
  switch (refusal.code) {
    case 'unknown-account':
      return noResource('account', accountId)
    case 'account-closed': {
      const detail = `the account was closed at ${refusal.closedAt.toISOString()}`
      return invalid({ detail, parameter: 'accountId' })
    }
    case 'unknown-key':
      return noResource('key', keyId)
    case 'over-plan': {
      const detail = `limit may be at most ${refusal.max}, the quota of the account's plan`
      return invalid({ detail, pointer: '/limit' })
    }
    case 'too-many-quotas':
      return invalid({ detail: `an account may set ${refusal.max} quotas: remove one first`, pointer: '' })
    case 'plan-lacks-api-access':
      return planLacksApiAccess(refusal.plan)
    case 'limits-not-per-account': {
      const detail = `the plan ${refusal.plan} has the same limits for every account`
      return invalid({ detail, pointer: '/limits' })
    }
    case 'over-rate-limit': {
      const detail = `rate_limit may be at most ${refusal.requestsPerMinute}, the account's requests per minute`
      return invalid({ detail, pointer: '/rate_limit' })
    }
    case 'too-many-keys': {
      const detail = `an account may have ${refusal.max} active keys: revoke one first`
      return invalid({ detail, pointer: '' })
    }
    case 'key-ended': {
      const ended = refusal.state === 'revoked' ? 'was revoked' : 'expired'
      const detail = `the key ${ended} at ${refusal.endedAt.toISOString()}: issue another one`
      return invalid({ detail, parameter: 'id' })
    }
    case 'expiry-out-of-range': {
      const detail = `expires_at must be in the future, at most ${refusal.maxDays} days from now, or null for a key that never expires`
      return invalid({ detail, pointer: '/expires_at' })
    }
    case 'over-grace':
      return overGrace(refusal.maxMs)
  }
}
