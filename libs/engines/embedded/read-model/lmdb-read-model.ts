import { closeLmdbFile, openLmdbFile } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import type { ReadModel } from '#libs/ports/read-model/queries.js'
import { LmdbDeliveries } from './lmdb-deliveries.js'
import { LmdbProjectionStore } from './lmdb-projection-store.js'
import { LmdbAccounts, LmdbInboxes } from './lmdb-queries.js'
import { LmdbReplays } from './lmdb-replays.js'
import { tablesIn } from './tables.js'

export interface LmdbReadModel extends ReadModel {
  close(): Promise<void>
}

/** Rejects if the file at `path` can't be opened, or if its list of tables can't be read. */
export async function openLmdbReadModel(path: string): Promise<LmdbReadModel> {
  const root = openLmdbFile<unknown, string>({ path, syncMode: 'after-visible', maxDbs: 40 })
  try {
    const tables = tablesIn(root)
    const accounts = new LmdbAccounts(tables)
    return {
      store: new LmdbProjectionStore(tables),
      queries: new LmdbInboxes(tables),
      accounts,
      webhooks: accounts,
      deliveries: new LmdbDeliveries(tables),
      replays: new LmdbReplays(tables),
      close: () => closeLmdbFile(root),
    }
  } catch (error) {
    await root.close()
    throw error
  }
}
