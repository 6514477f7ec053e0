import { IsIn } from 'class-validator'
import { SENT_EVENTS } from '#libs/domain/inbox/events.js'
import { WEBHOOK_EVENT_TYPES, type StartFrom, type WebhookEventType } from '#libs/domain/webhook/events.js'
import { errorInUrl, MAX_URL_CHARACTERS, URL_FORM } from '#libs/domain/webhook/endpoint-url.js'
import {
  IfGiven,
  TIME_PATTERN,
  TIME_FORM,
  Rule,
  parseTime,
  readTime,
  IsGrace,
  IsSetOf,
} from '../http/rules.js'
import { DescribeBody, DescribeProperty } from '../openapi/describe.js'

const OF_INBOX = SENT_EVENTS.map(({ publicName }) => publicName)
const EXAMPLE = { url: 'https://ci.example/mail', events: ['message.received', 'inbox.expired'] }

/** The properties of a new webhook. */
function newWebhookWith(types: readonly WebhookEventType[]) {
  class NewWebhook {
    @DescribeProperty('The URL of the endpoint: http or https, without user name, password or fragment.')
    @IsEndpoint()
    url!: string

    @DescribeProperty('The events to deliver.', { examples: [EXAMPLE.events] })
    @AreEvents(types)
    events: WebhookEventType[] = ['message.received']

    @DescribeProperty(
      'The first event to deliver: `now`, `beginning` for all existing events, or a time (RFC 3339) for the events since then.',
    )
    @IsStart()
    start_from: string = 'now'
  }
  return NewWebhook
}

/** The body of POST /v1/webhooks. */
@DescribeBody({ description: 'A new webhook of an environment.', example: EXAMPLE })
export class RegisterWebhook extends newWebhookWith(WEBHOOK_EVENT_TYPES) {}

/** The body of POST /v1/inboxes/{id}/webhooks. */
@DescribeBody({ description: 'A new webhook of an inbox.', example: EXAMPLE })
export class RegisterInboxWebhook extends newWebhookWith(OF_INBOX) {}

/** The body of PATCH /v1/webhooks/{id}. At least one property is required. */
@DescribeBody({
  description: 'What to change of a webhook.',
  example: { state: 'disabled' },
  minProperties: 1,
})
export class ChangeWebhook {
  @DescribeProperty('The new URL of the endpoint.')
  @IfGiven()
  @IsEndpoint()
  url?: string

  @DescribeProperty('The new list of events to deliver.', { examples: [['message.received']] })
  @IfGiven()
  @AreEvents(WEBHOOK_EVENT_TYPES)
  events?: WebhookEventType[]

  @DescribeProperty(
    'Whether events are delivered. `active` enables a webhook that was disabled for any reason.',
  )
  @IfGiven()
  @IsIn(['active', 'disabled'], { message: 'state must be active or disabled' })
  state?: 'active' | 'disabled'
}

/** The body of POST /v1/webhooks/{id}/secret/rotate. */
@DescribeBody({ description: 'How to replace the secret of a webhook.', example: { grace: '24h' } })
export class RotateWebhookSecret {
  @DescribeProperty(
    'How long requests are also signed with the former secret, at most 7 days: `0`, or a whole number and one of `s`, `m`, `h`, `d`, `w`.',
  )
  @IsGrace()
  grace: string = '24h'
}

/** The value of a validated `start_from`. */
export function readStart(text: string): StartFrom {
  if (text === 'now' || text === 'beginning') return text
  return readTime(text)
}

function IsEndpoint(): PropertyDecorator {
  const errorIn = (value: unknown) => (typeof value === 'string' ? errorInUrl(value) : 'must be a string')
  return Rule(
    'isEndpoint',
    (value) => errorIn(value) === null,
    (value) => `url ${errorIn(value)}`,
    {
      type: 'string',
      pattern: URL_FORM,
      maxLength: MAX_URL_CHARACTERS,
      examples: ['https://ci.example/mail'],
    },
  )
}

function AreEvents(types: readonly WebhookEventType[]): PropertyDecorator {
  const message = `events must be an array of one or more of ${types.join(', ')}, each once`
  return IsSetOf((options) => IsIn(types, options), types.length, message)
}

function IsStart(): PropertyDecorator {
  return Rule(
    'isStart',
    (value) => typeof value === 'string' && (/^(now|beginning)$/.test(value) || parseTime(value) !== null),
    `$property must be "now", "beginning", or ${TIME_FORM}`,
    {
      type: 'string',
      pattern: `^(now|beginning|${TIME_PATTERN})$`,
      examples: ['beginning', '2026-11-21T08:00:00Z'],
    },
  )
}
