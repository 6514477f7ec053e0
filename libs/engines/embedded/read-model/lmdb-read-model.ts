import { closeLmdbFile } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import type { ReadModel } from '#libs/ports/read-model/queries.js'
import { LmdbAccounts } from './lmdb-accounts.js'
import { LmdbDeliveries } from './lmdb-deliveries.js'
import { LmdbProjectionStore } from './lmdb-projection-store.js'
import { LmdbQueries } from './lmdb-queries.js'
import { LmdbReplays } from './lmdb-replays.js'
import { openTables } from './tables.js'

export interface LmdbReadModel extends ReadModel {
  close(): Promise<void>
}

/** Throws if the file at `path` can't be opened. */
export async function openLmdbReadModel(path: string): Promise<LmdbReadModel> {
  const tables = await openTables(path)
  const accounts = new LmdbAccounts(tables)
  return {
    store: new LmdbProjectionStore(tables),
    queries: new LmdbQueries(tables),
    accounts,
    webhooks: accounts,
    deliveries: new LmdbDeliveries(tables),
    replays: new LmdbReplays(tables),
    close: () => closeLmdbFile(tables.root),
  }
}
