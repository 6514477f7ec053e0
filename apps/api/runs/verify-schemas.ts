import Type, { type Static } from 'typebox'
import { Count, Digest, IdOf, OneOf, OrNull, Time } from '../openapi/describe.js'
import { TIME_SCHEMA } from '../http/rules.js'
import { Problem } from '../openapi/problem-responses.js'
import { QuantilesAndMax } from '../usage/usage-schemas.js'
import { MAX_ID_CHARACTERS, MAX_RECIPIENT_CHARACTERS } from './manifest-body.js'

/*
 * The lines of a manifest and of the answer to its verification.
 */

export const ManifestLineSchema = Type.Object(
  {
    recipient: Type.String({
      minLength: 1,
      maxLength: MAX_RECIPIENT_CHARACTERS,
      description: 'The address of RCPT TO.',
    }),
    id: Type.String({
      minLength: 1,
      maxLength: MAX_ID_CHARACTERS,
      description: 'The value of the header that identifies the mail.',
    }),
    sent_at: Type.Optional(
      Type.Unsafe<string | null>({
        ...TIME_SCHEMA,
        type: ['string', 'null'],
        description: 'When it was sent (RFC 3339), to find late mail.',
      }),
    ),
    sha256: Type.Optional(
      Type.Unsafe<string | null>({
        type: ['string', 'null'],
        pattern: '^[0-9a-fA-F]{64}$',
        description: 'The SHA-256 of its source as it was sent, before dot-stuffing, to find altered mail.',
      }),
    ),
  },
  {
    $id: 'ManifestLine',
    description: 'A mail that was sent to a recipient. Other properties are ignored.',
    examples: [
      {
        recipient: 'k3v9x2m4q8wz7t5b6n0c@mayfly.test',
        id: '<1@load.example>',
        sent_at: '2026-11-25T20:00:00.123Z',
        sha256: 'b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9',
      },
    ],
  },
)

const MESSAGE_KINDS = ['duplicate', 'unexpected', 'late', 'altered', 'reordered'] as const
export type MessageKind = (typeof MESSAGE_KINDS)[number]

const recipient = Type.String({ description: 'The address of RCPT TO.' })
const line = Type.Integer({ minimum: 1, description: 'The line of the manifest, without empty lines.' })

const RunDifference = Type.Object(
  {
    kind: OneOf(
      MESSAGE_KINDS,
      '`duplicate`: a message beyond those that the manifest has. `unexpected`: no line has its recipient and id. `late`: ' +
        'it was received more than `late_ms` after `sent_at`. `altered`: its source has another SHA-256. `reordered`: its ' +
        'line is before that of an earlier message of the inbox.',
    ),
    recipient,
    id: OrNull(Type.String(), 'The value of its header; null if it has no such header.'),
    message_id: IdOf('msg', 'The id of the message.'),
    inbox_id: IdOf('inb', 'The id of its inbox.'),
    received_at: Time('When it was accepted.'),
    duplicate_of: Type.Optional(
      IdOf('msg', 'With `duplicate`, if a fault of the inbox made it: the message that it repeats.'),
    ),
    line: Type.Optional(line),
    sent_at: Type.Optional(Time('With `late`: as in the manifest.')),
    delay_ms: Type.Optional(Count('With `late`: from `sent_at` to `received_at`.')),
    late_by_ms: Type.Optional(Count('With `late`: by how much that is more than `late_ms`.')),
    sha256: Type.Optional(Digest('With `altered`: as in the manifest.')),
    received_sha256: Type.Optional(Digest('With `altered`: that of the message.')),
    after_line: Type.Optional(
      Type.Integer({ minimum: 1, description: 'With `reordered`: the line of an earlier message.' }),
    ),
  },
  { $id: 'RunDifference', description: 'A message that differs from the manifest.' },
)
export type MessageDifference = Static<typeof RunDifference>

/** What the manifest says about a mail that has no message. */
const manifestLine = {
  recipient,
  id: Type.String({ description: 'As in the manifest.' }),
  line,
  sent_at: OrNull(Time(''), 'As in the manifest.'),
}

const MissingMail = Type.Object(
  {
    kind: OneOf(['missing'], 'No message has the recipient and the id.'),
    ...manifestLine,
  },
  { $id: 'MissingMail', description: 'A line of the manifest without a message.' },
)

const ErasedMail = Type.Object(
  {
    kind: OneOf(['erased'], 'The inbox of the recipient has ended, so its mail is permanently deleted.'),
    ...manifestLine,
    inbox_id: IdOf('inb', 'The id of the inbox.'),
    state: OneOf(['deleted', 'expired'], 'How the inbox ended.'),
    ended_at: Time('When it ended.'),
  },
  { $id: 'ErasedMail', description: 'A line of the manifest whose inbox has ended.' },
)

export const RunSummary = Type.Object(
  {
    kind: OneOf(['summary']),
    expected: Count('Lines of the manifest.'),
    found: Count('Lines with a message.'),
    missing: Count('Lines without a message.'),
    duplicate: Count('Messages beyond those that the manifest has.'),
    unexpected: Count('Messages that no line names.'),
    late: Count('Messages that were late.'),
    altered: Count('Messages with another source.'),
    reordered: Count('Messages out of order; 0 without `order=true`.'),
    erased: Count('Lines whose inbox has ended. They are not missing.'),
    faults: Type.Object(
      {
        dropped: Count('Mails that were accepted and dropped. They are missing.'),
        duplicated: Count('Of `duplicate`, those that a fault made.'),
      },
      { description: 'What the faults of the inboxes did on purpose.' },
    ),
    visible_ms: OrNull(
      QuantilesAndMax,
      'From the acceptance of a mail until it can be read over the API, as far as it is counted. Null if nothing is.',
    ),
  },
  {
    $id: 'RunSummary',
    description: 'The last line of a verification.',
    examples: [
      {
        kind: 'summary',
        ...{ expected: 1000, found: 997, missing: 2, erased: 1 },
        ...{ duplicate: 0, unexpected: 0, late: 0, altered: 0, reordered: 0 },
        faults: { dropped: 2, duplicated: 0 },
        visible_ms: { p50: 4, p95: 9, p99: 21, max: 40 },
      },
    ],
  },
)

const RunProblem = Type.Object(
  {
    kind: OneOf(['problem']),
    problem: Problem,
  },
  {
    $id: 'RunProblem',
    description: 'The last line of a verification that failed after its answer had begun. It has no summary.',
  },
)

export const RunLine = Type.Union([RunDifference, MissingMail, ErasedMail, RunSummary, RunProblem])
