import { randomInt } from 'node:crypto'
import { IsIn, IsNumber, Matches, Max, Min } from 'class-validator'
import {
  ACTIONS_AT,
  FAULT_ACTIONS,
  FAULT_STAGES,
  faults,
  MAX_FAULTS,
  type Fault,
  type FaultAction,
  type FaultStage,
} from '#libs/domain/inbox/fault.js'
import { invalid } from '../http/problems.js'
import { IfGiven, IsWholeNumber } from '../http/rules.js'
import { ListOf } from '../http/validation.js'
import { DescribeBody, DescribeProperty } from '../openapi/describe.js'

/*
 * Faults on purpose as the API takes and returns them.
 */

const DEFAULT_CODE = 451
const MAX_DELAY_MS = 60_000
const MAX_ATTEMPTS = 1_000_000
/** Seeds that a process chooses: below 2^32. */
const MAX_CHOSEN_SEED = 2 ** 32

const example = { stage: 'rcpt', action: 'reject', code: 451, enhanced_code: '4.7.1', first_n: 1 }

/** A fault in the body of PUT …/faults, and in the answers. */
@DescribeBody({ description: 'A fault on purpose. It applies if all of its conditions hold.', example })
export class InboxFault {
  @DescribeProperty(
    'When it happens: at RCPT TO, after the content of the mail, or once the mail is accepted.',
  )
  @IsIn(FAULT_STAGES, { message: `stage must be one of ${FAULT_STAGES.join(', ')}` })
  stage!: FaultStage

  @DescribeProperty(
    '`reject` and `delay` at `rcpt` and `data`; `drop` and `duplicate` at `after_accept`: the sender gets its 250, and ' +
      'the mail is lost, or arrives twice.',
  )
  @IsIn(FAULT_ACTIONS, { message: `action must be one of ${FAULT_ACTIONS.join(', ')}` })
  action!: FaultAction

  @DescribeProperty('With `reject`: the reply code.', { default: DEFAULT_CODE })
  @IsWholeNumber(400, 599)
  code?: number

  @DescribeProperty('With `reject`: the enhanced status code (RFC 3463). Default: `4.0.0` or `5.0.0`.', {
    examples: ['4.7.1'],
  })
  @IfGiven()
  @Matches(/^[45]\.[0-9]{1,3}\.[0-9]{1,3}$/, { message: 'enhanced_code must be like 4.7.1' })
  enhanced_code?: string

  @DescribeProperty('With `reject`: the text of the reply.')
  @IfGiven()
  @Matches(/^[ -~]{1,200}$/, { message: 'text must be 1 to 200 printable ASCII characters' })
  text?: string

  @DescribeProperty('With `delay`: how long the reply is delayed, in milliseconds.')
  @IsWholeNumber(1, MAX_DELAY_MS)
  delay_ms?: number

  @DescribeProperty(
    'Only at the first n attempts of each pair of sender and recipient. With 451, this is greylisting.',
  )
  @IsWholeNumber(1, MAX_ATTEMPTS)
  first_n?: number

  @DescribeProperty('Only at every nth attempt.')
  @IsWholeNumber(1, MAX_ATTEMPTS)
  every_n?: number

  @DescribeProperty('Only with this probability.')
  @IfGiven()
  @Max(1, { message: 'probability may be at most 1' })
  @Min(0, { message: 'probability must be at least 0' })
  @IsNumber({}, { message: 'probability must be a number' })
  probability?: number

  @DescribeProperty(
    'With `probability`: the attempts that are chosen depend only on this number. Default: a random one.',
  )
  @IsWholeNumber(0, Number.MAX_SAFE_INTEGER)
  seed?: number
}

/** The body of PUT …/faults. */
@DescribeBody({ description: 'All faults, in the order in which they are checked.', example: [example] })
@ListOf({ item: InboxFault, maxItems: MAX_FAULTS })
export class SetFaults {
  items!: InboxFault[]
}

/** Throws invalid-request if properties do not fit together. */
export function readFaults({ items }: SetFaults): Fault[] {
  for (const [index, item] of items.entries()) {
    const error = errorIn(item)
    if (error !== null) throw invalid({ detail: error.detail, pointer: `/${index}/${error.property}` })
  }
  return faults.decode(items).map((fault) => {
    const { action, code, probability, seed } = fault
    return {
      ...fault,
      code: action === 'reject' ? (code ?? DEFAULT_CODE) : null,
      seed: probability === null ? null : (seed ?? randomInt(MAX_CHOSEN_SEED)),
    }
  })
}

function errorIn(item: InboxFault): { detail: string; property: keyof InboxFault } | null {
  const { stage, action, code = DEFAULT_CODE, enhanced_code: enhancedCode, delay_ms: delayMs } = item
  const only = (property: keyof InboxFault, other: string) => {
    return { detail: `${property} can only be sent with ${other}`, property }
  }
  const actions = ACTIONS_AT[stage]
  if (!actions.includes(action))
    return { detail: `action must be ${actions.join(' or ')} at ${stage}`, property: 'action' }
  for (const property of ['code', 'enhanced_code', 'text'] as const)
    if (action !== 'reject' && item[property] !== undefined) return only(property, 'the action reject')
  if (action !== 'delay' && delayMs !== undefined) return only('delay_ms', 'the action delay')
  if (action === 'delay' && delayMs === undefined)
    return { detail: 'the action delay requires delay_ms', property: 'delay_ms' }
  if (enhancedCode !== undefined && !enhancedCode.startsWith(String(code).charAt(0)))
    return { detail: 'enhanced_code must begin with the first digit of code', property: 'enhanced_code' }
  if (item.seed !== undefined && item.probability === undefined) return only('seed', 'probability')
  return null
}

/** A reason why mail may be missing, late or there twice; null without faults. */
export function faultsHint(faults: readonly Fault[], of: 'inbox' | 'environment'): string | null {
  if (faults.length === 0) return null
  const listed = faults.map(({ stage, action }) => `${action} at ${stage}`).join(', ')
  const whose = of === 'inbox' ? 'The inbox has' : 'New inboxes of the environment have'
  return `${whose} faults on purpose (${listed}); DELETE …/faults removes them.`
}
