import Type from 'typebox'
import { Count, OrNull, Time } from '../openapi/schema-parts.js'

export const totals = {
  requests: Count('Requests that were answered.'),
  refusals: Count('Requests that were answered 429, and mails that were refused.'),
  inboxes: Count('Inboxes that were made.'),
  mails: Count('Mails that came to them, each copy.'),
  bytes: Count('Bytes of those mails.'),
}

const Milliseconds = Type.Number({ minimum: 0 })
const Quantiles = Type.Object(
  { p50: Milliseconds, p95: Milliseconds, p99: Milliseconds },
  { $id: 'Quantiles', description: 'Milliseconds that half, 95 and 99 in 100 took at most.' },
)

const timed = (what: string) => OrNull(Quantiles, `${what} Null where there was nothing to be timed.`)
const visible_ms = timed('From a mail being accepted to its being had over the API.')

const figures = {
  requests: 210,
  refusals: 3,
  inboxes: 12,
  mails: 48,
  bytes: 251904,
  visible_ms: { p50: 4, p95: 9, p99: 21 },
}

export const UsageRow = Type.Object(
  {
    from: Time('When it begins; of an interval that the query does not take in whole, where the query does.'),
    to: Time('When it ends, likewise.'),
    group: OrNull(Type.String(), 'A key, an environment, or the value of a label; null without one.'),
    ...totals,
    request_ms: timed('From a request to its answer, waits and streams aside.'),
    visible_ms,
  },
  {
    $id: 'UsageRow',
    description: 'What happened in an interval.',
    examples: [
      {
        from: '2026-11-21T08:00:00.000Z',
        to: '2026-11-21T09:00:00.000Z',
        group: null,
        ...figures,
        request_ms: { p50: 2.1, p95: 7.4, p99: 12.9 },
      },
    ],
  },
)

export const UsageReportSchema = Type.Object(
  {
    ...totals,
    duplicates: Count('Mails beyond the first of those with the same Message-ID in the same inbox.'),
    read: Count('Messages that the API has answered with at least once.'),
    visible_ms,
    first_read_ms: timed('From a mail being accepted to the first answer that had it in it.'),
    first_mail_at: OrNull(Time(''), 'When the first mail came.'),
    last_mail_at: OrNull(Time(''), 'When the last one came.'),
  },
  {
    $id: 'UsageReport',
    description: 'How a load run went.',
    examples: [
      {
        ...figures,
        duplicates: 0,
        read: 48,
        first_read_ms: { p50: 11, p95: 40, p99: 88 },
        first_mail_at: '2026-11-21T08:00:02.120Z',
        last_mail_at: '2026-11-21T08:03:41.007Z',
      },
    ],
  },
)
