import { describeAccountQueries } from './account-queries.contract.js'
import { describeAuditQueries } from './audit-queries.contract.js'
import { describeDeliveryQueries } from './delivery-queries.contract.js'
import { describeDomainQueries } from './domain-queries.contract.js'
import { describeEnvironmentLists } from './environment-lists.contract.js'
import { describeHistoryQueries } from './history-queries.contract.js'
import { describeInboxQueries } from './inbox-queries.contract.js'
import { describeLabelCounts } from './label-counts.contract.js'
import { describeMessageQueries } from './message-queries.contract.js'
import type { ReadModelHarness } from './read-model-harness.contract.js'
import { describeReplayQueries } from './replay-queries.contract.js'
import { describeWebhookQueries } from './webhook-queries.contract.js'

export function describeQueries(
  name: string,
  make: () => Promise<ReadModelHarness> | ReadModelHarness,
): void {
  describe(`${name} as queries`, () => {
    let harness: ReadModelHarness

    beforeEach(async () => {
      harness = await make()
    })
    afterEach(() => harness.close())

    describe('of inboxes', () => describeInboxQueries(() => harness))
    describe('of messages', () => describeMessageQueries(() => harness))
    describe('of the lists of an environment', () => describeEnvironmentLists(() => harness))
    describe('of the counts of labels', () => describeLabelCounts(() => harness))
    describe('of history', () => describeHistoryQueries(() => harness))
    describe('of accounts', () => describeAccountQueries(() => harness))
    describe('of domains', () => describeDomainQueries(() => harness))
    describe('of deliveries', () => describeDeliveryQueries(() => harness))
    describe('of replays', () => describeReplayQueries(() => harness))
    describe('of webhooks', () => describeWebhookQueries(() => harness))
    describe('of audit logs', () => describeAuditQueries(() => harness))
  })
}
