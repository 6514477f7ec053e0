import { randomInt } from 'node:crypto'
import { IsIn, IsNumber, Matches, Max, Min } from 'class-validator'
import {
  ACTIONS_AT,
  FAULT_ACTIONS,
  FAULT_STAGES,
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

  @DescribeProperty('With `reject`: the reply code.', { default: 451 })
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
  return items.map((item, index) => {
    const { stage, action, code, enhanced_code: enhancedCode, text, delay_ms: delayMs } = item
    const { first_n: firstN, every_n: everyN, probability, seed } = item
    const refuse = (detail: string, property: keyof InboxFault) =>
      invalid({ detail, pointer: `/${index}/${property}` })
    if (!ACTIONS_AT[stage].includes(action)) {
      throw refuse(`action must be ${ACTIONS_AT[stage].join(' or ')} at ${stage}`, 'action')
    }
    for (const property of ['code', 'enhanced_code', 'text'] as const) {
      if (action !== 'reject' && item[property] !== undefined)
        throw refuse(`${property} can only be sent with the action reject`, property)
    }
    if ((action === 'delay') !== (delayMs !== undefined)) {
      throw refuse(
        action === 'delay'
          ? 'the action delay requires delay_ms'
          : 'delay_ms can only be sent with the action delay',
        'delay_ms',
      )
    }
    if (enhancedCode !== undefined && !enhancedCode.startsWith(String(code ?? 451).charAt(0))) {
      throw refuse('enhanced_code must begin with the first digit of code', 'enhanced_code')
    }
    if (seed !== undefined && probability === undefined)
      throw refuse('seed can only be sent with probability', 'seed')
    return {
      ...{ stage, action },
      code: action === 'reject' ? (code ?? 451) : null,
      ...{ enhancedCode: enhancedCode ?? null, text: text ?? null, delayMs: delayMs ?? null },
      ...{ firstN: firstN ?? null, everyN: everyN ?? null, probability: probability ?? null },
      seed: probability === undefined ? null : (seed ?? randomInt(MAX_CHOSEN_SEED)),
    }
  })
}

/** A reason why mail may be missing, late or there twice; null without faults. */
export function faultsHint(faults: readonly Fault[], of: 'inbox' | 'environment'): string | null {
  if (faults.length === 0) return null
  const listed = faults.map(({ stage, action }) => `${action} at ${stage}`).join(', ')
  const whose = of === 'inbox' ? 'The inbox has' : 'New inboxes of the environment have'
  return `${whose} faults on purpose (${listed}); DELETE …/faults removes them.`
}

/** Properties that were not set are left out, so that the answer can be sent back. */
export function faultJson(fault: Fault) {
  const { stage, action, code, enhancedCode, text, delayMs, firstN, everyN, probability, seed } = fault
  return {
    ...{ stage, action },
    ...(code !== null && { code }),
    ...(enhancedCode !== null && { enhanced_code: enhancedCode }),
    ...(text !== null && { text }),
    ...(delayMs !== null && { delay_ms: delayMs }),
    ...(firstN !== null && { first_n: firstN }),
    ...(everyN !== null && { every_n: everyN }),
    ...(probability !== null && { probability }),
    ...(seed !== null && { seed }),
  }
}
