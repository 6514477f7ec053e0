import Type from 'typebox'
import type {
  ReplayAdvanced,
  ReplayCancelled,
  ReplayEvent,
  ReplayPlace,
  ReplayRequested,
  ReplaySelection,
} from '#libs/webhook/replay-events.js'
import { readTime, type EventForm } from './cloud-event.js'
import { Count, eventForm, IdText, Text, Time } from './event-form.js'

const ids = { webhook_id: IdText('whk'), replay_id: IdText('rpl') }

const Selection = Type.Union([
  Type.Object({ kind: Type.Literal('range'), from: Time, to: Time, only_failed: Type.Boolean() }),
  Type.Object({ kind: Type.Literal('deliveries'), delivery_ids: Type.Array(IdText('dlv')) }),
  Type.Object({ kind: Type.Literal('held'), since: Type.Optional(Time) }),
])

const Place = Type.Union([
  Type.Object({ stage: Type.Enum(['given', 'told']), offset: Count }),
  Type.Object({ stage: Type.Literal('held'), inbox_id: Type.Optional(IdText('inb')), offset: Count }),
])

const replayRequested = eventForm({
  name: 'webhook.replay-requested',
  contentType: 'application/json',
  properties: {
    ...ids,
    account_id: IdText('acc'),
    environment: Text,
    selection: Selection,
    requested_at: Time,
  },
  toData: (event: ReplayRequested) => ({
    ...idsOf(event),
    account_id: event.accountId,
    environment: event.environment,
    selection: writeSelection(event.selection),
    requested_at: event.requestedAt.toISOString(),
  }),
  fromData: (data): ReplayRequested => ({
    type: 'ReplayRequested',
    ...readIds(data),
    accountId: data.account_id,
    environment: data.environment,
    selection: readSelection(data.selection),
    requestedAt: readTime(data.requested_at),
  }),
})

const replayAdvanced = eventForm({
  name: 'webhook.replay-advanced',
  contentType: 'application/json',
  properties: { ...ids, step: Type.Integer({ minimum: 1 }), next: Type.Optional(Place), advanced_at: Time },
  toData: (event: ReplayAdvanced) => ({
    ...idsOf(event),
    step: event.step,
    ...(event.next === null ? {} : { next: writePlace(event.next) }),
    advanced_at: event.advancedAt.toISOString(),
  }),
  fromData: (data): ReplayAdvanced => ({
    type: 'ReplayAdvanced',
    ...readIds(data),
    step: data.step,
    next: data.next === undefined ? null : readPlace(data.next),
    advancedAt: readTime(data.advanced_at),
  }),
})

const replayCancelled = eventForm({
  name: 'webhook.replay-cancelled',
  contentType: 'application/json',
  properties: { ...ids, cancelled_at: Time },
  toData: (event: ReplayCancelled) => ({ ...idsOf(event), cancelled_at: event.cancelledAt.toISOString() }),
  fromData: (data): ReplayCancelled => ({
    type: 'ReplayCancelled',
    ...readIds(data),
    cancelledAt: readTime(data.cancelled_at),
  }),
})

/** How the events of replays are written, among those of the topic webhook-events. */
export const REPLAY_EVENT_FORMS = {
  ReplayRequested: replayRequested,
  ReplayAdvanced: replayAdvanced,
  ReplayCancelled: replayCancelled,
} satisfies { [Name in ReplayEvent['type']]: EventForm<Extract<ReplayEvent, { type: Name }>> }

type Ids = Pick<ReplayEvent, 'webhookId' | 'replayId'>
type IdsData = Type.Static<Type.TObject<typeof ids>>

function idsOf({ webhookId, replayId }: Ids): IdsData {
  return { webhook_id: webhookId, replay_id: replayId }
}

function readIds({ webhook_id, replay_id }: IdsData): Ids {
  return { webhookId: webhook_id, replayId: replay_id }
}

function writeSelection(selection: ReplaySelection): Type.Static<typeof Selection> {
  switch (selection.kind) {
    case 'range': {
      const { kind, from, to, onlyFailed } = selection
      return { kind, from: from.toISOString(), to: to.toISOString(), only_failed: onlyFailed }
    }
    case 'deliveries':
      return { kind: selection.kind, delivery_ids: [...selection.deliveryIds] }
    case 'held': {
      const { kind, since } = selection
      return { kind, ...(since === null ? {} : { since: since.toISOString() }) }
    }
  }
}

function readSelection(data: Type.Static<typeof Selection>): ReplaySelection {
  switch (data.kind) {
    case 'range':
      return {
        kind: data.kind,
        from: readTime(data.from),
        to: readTime(data.to),
        onlyFailed: data.only_failed,
      }
    case 'deliveries':
      return { kind: data.kind, deliveryIds: data.delivery_ids }
    case 'held':
      return { kind: data.kind, since: data.since === undefined ? null : readTime(data.since) }
  }
}

function writePlace(place: ReplayPlace): Type.Static<typeof Place> {
  if (place.stage !== 'held') return place
  const { stage, inboxId, offset } = place
  return { stage, ...(inboxId === null ? {} : { inbox_id: inboxId }), offset }
}

function readPlace(data: Type.Static<typeof Place>): ReplayPlace {
  if (data.stage !== 'held') return data
  const { stage, inbox_id: inboxId = null, offset } = data
  return { stage, inboxId, offset }
}
