import { closeLmdbFile } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { LmdbAccountQueries } from './lmdb-account-queries.js'
import { LmdbDeliveries } from './lmdb-deliveries.js'
import { LmdbProjectionStore } from './lmdb-projection-store.js'
import { LmdbQueries } from './lmdb-queries.js'
import { LmdbReplays } from './lmdb-replays.js'
import { LmdbWebhookQueries } from './lmdb-webhook-queries.js'
import { openTables } from './tables.js'

export interface LmdbReadModel {
  store: LmdbProjectionStore
  queries: LmdbQueries
  accounts: LmdbAccountQueries
  deliveries: LmdbDeliveries
  replays: LmdbReplays
  webhooks: LmdbWebhookQueries
  close(): Promise<void>
}

/** Throws if the file at `path` can't be opened. */
export async function openLmdbReadModel(path: string): Promise<LmdbReadModel> {
  const tables = await openTables(path)
  return {
    store: new LmdbProjectionStore(tables),
    queries: new LmdbQueries(tables),
    accounts: new LmdbAccountQueries(tables),
    deliveries: new LmdbDeliveries(tables),
    replays: new LmdbReplays(tables),
    webhooks: new LmdbWebhookQueries(tables),
    close: () => closeLmdbFile(tables.root),
  }
}
