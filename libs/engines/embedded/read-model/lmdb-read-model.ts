import type { RootDatabase } from 'lmdb'
import { closeLmdbFile, openLmdbStore } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import type { ReadModel } from '#libs/ports/read-model/queries.js'
import { LmdbAccounts } from './lmdb-accounts.js'
import { LmdbDeliveries } from './lmdb-deliveries.js'
import { LmdbProjectionStore } from './lmdb-projection-store.js'
import { LmdbInboxes } from './lmdb-inboxes.js'
import { LmdbReplays } from './lmdb-replays.js'
import { tablesIn } from './tables.js'

export interface LmdbReadModel extends ReadModel {
  close(): Promise<void>
}

/** Rejects if the file at `path` can't be opened or was changed by anything else, or if its list of tables can't be read. */
export function openLmdbReadModel(path: string): Promise<LmdbReadModel> {
  const file = { path, syncMode: 'after-visible', maxDbs: 40, isDerived: true } as const
  return openLmdbStore(file, (root: RootDatabase<unknown, string>) => {
    // In one transaction: a new file would be written once for each table.
    const tables = root.transactionSync(() => tablesIn(root))
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
  })
}
