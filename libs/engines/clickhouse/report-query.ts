import type { UsageReportQuery } from '#libs/ports/usage/usage-store.js'
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

/** One row about everything that has the labels: what a load run created, and how it went. */
export function reportQuery(asked: UsageReportQuery): BoundQuery {
  const { where, params } = boundsOf(asked)
  // The first reading of each message.
  const firstReads = `SELECT message_id, min(t.ms) AS ms FROM mail_events AS t ${where} AND t.type = 'read' GROUP BY message_id`
  // A mail counts for the key of its sender, which may be another than that of the inbox.
  const anyKey = boundsOf({ ...asked, owner: { ...asked.owner, keyId: null } }).where
  const inboxes = `SELECT countIf(t.type = 'inbox.created' AND ${ownerClause(asked.owner)}) AS created,
      countIf(t.type = 'message.received') AS received
    FROM inbox_events AS t ${anyKey} GROUP BY t.inbox_id`
  const query = `SELECT r.requests, r.refused + m.refused AS refusals, i.inboxes, i.mails, i.bytes,
      m.duplicates, f.read, m.visibleMs, f.firstReadMs, m.acceptMs, m.maxAcceptMs, e.inboxesWithoutMail,
      i.firstMailAt, i.lastMailAt
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
        quantilesTDigestIf(${QUANTILES})(t.ms, t.type = 'shown') AS visibleMs,
        quantilesTDigestIf(${QUANTILES})(t.ms, t.type = 'accepted') AS acceptMs,
        maxIf(t.ms, t.type = 'accepted') AS maxAcceptMs
        FROM mail_events AS t ${where}) AS m,
      (SELECT toFloat64(count()) AS read, quantilesTDigest(${QUANTILES})(ms) AS firstReadMs FROM (${firstReads})) AS f,
      (SELECT toFloat64(countIf(created > 0 AND received = 0)) AS inboxesWithoutMail FROM (${inboxes})) AS e
    ${WITHIN_BOUNDS}`
  return { query, query_params: params }
}

/** A row for each bucket of so many milliseconds in which mail came. */
export function timelineQuery(asked: UsageReportQuery, widthMs: number): BoundQuery {
  const { where, params } = boundsOf(asked)
  const query = `SELECT toFloat64(intDiv(toUnixTimestamp64Milli(t.at), ${widthMs}) * ${widthMs}) AS start,
      toFloat64(count()) AS mails, toFloat64(sum(t.bytes)) AS bytes
    FROM inbox_events AS t ${where} AND t.type = 'message.received'
    GROUP BY start ${WITHIN_BOUNDS}`
  return { query, query_params: params }
}

function boundsOf({ owner, from, to, labels }: UsageReportQuery) {
  return {
    where: `WHERE ${ownerClause(owner)} AND ${spanClause('')}${labelClause(labels)}`,
    params: { ...ownerParams(owner), ...labelParams(labels), from: from.getTime(), to: to.getTime() },
  }
}
