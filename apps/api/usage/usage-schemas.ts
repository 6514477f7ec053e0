import Type, { type TSchema } from 'typebox'
import { list, object, type ValueOf } from '#libs/domain/event-sourcing/declare.js'
import { type UsageReport, MAX_BUCKETS } from '#libs/ports/usage/usage-store.js'
import { Count, orNull, OrNull, time } from '#libs/runtime/resource.js'

const received = {
  mails: Count("Mails received; each recipient's copy counts."),
  bytes: Count('Bytes of those mails.'),
}

export const totals = {
  requests: Count('Requests that were answered.'),
  refusals: Count('Requests that were answered 429, and mails that were refused.'),
  inboxes: Count('Inboxes that were created.'),
  ...received,
}

const Milliseconds = Type.Number({ minimum: 0 })
const Quantiles = Type.Object(
  { p50: Milliseconds, p95: Milliseconds, p99: Milliseconds },
  { $id: 'Quantiles', description: 'Milliseconds: median, 95th and 99th percentile.' },
)

export const QuantilesAndMax = Type.Object(
  { ...Quantiles.properties, max: Milliseconds },
  { $id: 'QuantilesAndMax', description: 'Milliseconds: median, 95th and 99th percentile, maximum.' },
)

const timed = <Schema extends TSchema>(schema: Schema, what: string) =>
  OrNull(schema, `${what} Null if there was nothing to measure.`)
const UNTIL_VISIBLE = 'From the acceptance of a mail until it can be read over the API.'

const figures = {
  requests: 210,
  refusals: 3,
  inboxes: 12,
  mails: 48,
  bytes: 251904,
  visible_ms: { p50: 4, p95: 9, p99: 21 },
}

export const usageRow = object(
  {
    from: time('The start of the interval, or of the span of the query if that is later.'),
    to: time('The end of the interval, or of the span of the query if that is earlier.'),
    group: OrNull(Type.String(), 'The key, environment or label value of the row; null without one.'),
    groupName: OrNull(
      Type.String(),
      "The name of the row's key. Null for other groups, and for keys beyond the account's newest 1,000.",
    ),
    ...totals,
    requestMs: timed(Quantiles, 'From a request to its answer, without waits and streams.'),
    visibleMs: timed(Quantiles, UNTIL_VISIBLE),
  },
  {
    $id: 'UsageRow',
    description: 'The usage in an interval.',
    examples: [
      {
        from: '2026-11-21T08:00:00.000Z',
        to: '2026-11-21T09:00:00.000Z',
        group: null,
        group_name: null,
        ...figures,
        request_ms: { p50: 2.1, p95: 7.4, p99: 12.9 },
      },
    ],
  },
)

export type UsageRow = ValueOf<typeof usageRow>

const bucket = object(
  { from: time('When the bucket begins.'), to: time('When it ends, exclusive.'), ...received },
  { $id: 'UsageTimelineBucket', description: 'The mails of a part of a load run.' },
)

const report = object(
  {
    countedUpTo: orNull(
      time(''),
      'Everything that happened before this time is in the report, except for requests, refusals, reads and latencies ' +
        'that a process could not append to the log immediately. Null if counting is more than a minute behind, or the server has just ' +
        'started.',
    ),
    ...totals,
    duplicates: Count('Mails beyond the first of those with the same Message-ID in the same inbox.'),
    read: Count('Messages that the API has answered with at least once.'),
    inboxesWithoutMail: Count('Inboxes that were created and got no mail.'),
    acceptMs: OrNull(
      QuantilesAndMax,
      'From the last byte of a mail until it is durable, just before the sender gets 250. Null if no mail was accepted.',
    ),
    visibleMs: timed(QuantilesAndMax, UNTIL_VISIBLE),
    firstReadMs: timed(
      QuantilesAndMax,
      'From the acceptance of a mail to the first answer that contains it.',
    ),
    firstMailAt: orNull(time(''), 'When the first mail arrived.'),
    lastMailAt: orNull(time(''), 'When the last mail arrived.'),
    mailsPerSecond: OrNull(
      Type.Number({ minimum: 0 }),
      'Average rate from the first mail to the last. Null for fewer than two mails, or if all arrived at the same time.',
    ),
    timeline: list(bucket, {
      maxItems: MAX_BUCKETS,
      description:
        'Mails over time, from the first to the last, in buckets of equal length; buckets without mail are included. The ' +
        'length is at least a second and depends on how long the run took.',
    }),
  },
  {
    $id: 'UsageReport',
    description: 'A summary of a load run.',
    examples: [
      {
        counted_up_to: '2026-11-21T08:05:12.400Z',
        ...figures,
        visible_ms: { ...figures.visible_ms, max: 34 },
        duplicates: 0,
        read: 48,
        inboxes_without_mail: 1,
        accept_ms: { p50: 2.4, p95: 5.1, p99: 9.8, max: 12.3 },
        first_read_ms: { p50: 11, p95: 40, p99: 88, max: 120 },
        first_mail_at: '2026-11-21T08:00:02.120Z',
        last_mail_at: '2026-11-21T08:00:04.007Z',
        mails_per_second: 24.907,
        timeline: [
          { from: '2026-11-21T08:00:02.000Z', to: '2026-11-21T08:00:03.000Z', mails: 23, bytes: 120703 },
          { from: '2026-11-21T08:00:03.000Z', to: '2026-11-21T08:00:04.000Z', mails: 24, bytes: 125952 },
          { from: '2026-11-21T08:00:04.000Z', to: '2026-11-21T08:00:05.000Z', mails: 1, bytes: 5249 },
        ],
      },
    ],
  },
)
export const UsageReportSchema = report.schema

export function reportJson(values: UsageReport & { countedUpTo: Date | null }) {
  return report.encode({ ...values, mailsPerSecond: mailsPerSecond(values) })
}

/** n mails have n - 1 intervals between the first and the last. */
function mailsPerSecond({ mails, firstMailAt, lastMailAt }: UsageReport): number | null {
  const seconds = ((lastMailAt?.getTime() ?? 0) - (firstMailAt?.getTime() ?? 0)) / 1_000
  return seconds > 0 ? Math.round(((mails - 1) / seconds) * 1_000) / 1_000 : null
}
