import type { UsageReportQuery } from '../usage-store.js'
import {
  labelClause,
  labelParams,
  ownerClause,
  ownerParams,
  spanClause,
  WITHIN_BOUNDS,
  type BoundQuery,
} from './figures-query.js'
import { QUANTILES } from './schema.js'

/** One row about all that bears the labels: what a load run made, and how it went. */
export function reportQuery({ owner, from, to, labels }: UsageReportQuery): BoundQuery {
  const where = `WHERE ${ownerClause(owner)} AND ${spanClause('')}${labelClause(labels)}`
  const params = {
    ...ownerParams(owner),
    ...labelParams(labels),
    from: from.getTime(),
    to: to.getTime(),
  }
  // Each message's first reading, whoever read it how often.
  const firstReads = `SELECT message_id, min(t.ms) AS ms FROM mail_events AS t ${where} AND t.type = 'read' GROUP BY message_id`
  const query = `SELECT r.requests, r.refused + m.refused AS refusals, i.inboxes, i.mails, i.bytes,
      m.duplicates, f.read, m.visibleMs, f.firstReadMs, i.firstMailAt, i.lastMailAt
    FROM
      (SELECT toFloat64(count()) AS requests, toFloat64(countIf(t.refused)) AS refused FROM requests AS t ${where}) AS r,
      (SELECT toFloat64(countIf(t.type = 'inbox.created')) AS inboxes,
        toFloat64(countIf(t.type = 'message.received')) AS mails,
        toFloat64(sumIf(t.bytes, t.type = 'message.received')) AS bytes,
        toFloat64(toUnixTimestamp64Milli(minIf(t.at, t.type = 'message.received'))) AS firstMailAt,
        toFloat64(toUnixTimestamp64Milli(maxIf(t.at, t.type = 'message.received'))) AS lastMailAt
        FROM inbox_events AS t ${where}) AS i,
      (SELECT toFloat64(countIf(t.type = 'refused')) AS refused,
        toFloat64(countIf(t.fingerprint != '') - uniqExactIf((t.inbox_id, t.fingerprint), t.fingerprint != '')) AS duplicates,
        quantilesTDigestIf(${QUANTILES})(t.ms, t.type = 'shown') AS visibleMs
        FROM mail_events AS t ${where}) AS m,
      (SELECT toFloat64(count()) AS read, quantilesTDigest(${QUANTILES})(ms) AS firstReadMs FROM (${firstReads})) AS f
    ${WITHIN_BOUNDS}`
  return { query, query_params: params }
}
