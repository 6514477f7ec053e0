import type { RootDatabase } from 'lmdb'
import { closeLmdbFile, openLmdbStore } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { type ReadModel, readModel } from '#libs/ports/read-model/queries.js'
import { VIEWS_FORM } from '#libs/ports/read-model/views-form.js'
import { LmdbViewStore } from './lmdb-view-store.js'

export interface LmdbReadModel extends ReadModel {
  close(): Promise<void>
}

/**
 * Opens the views of a log with this number of partitions. Rejects if the file at `path` can't be opened or was changed
 * by anything else, or if its list of tables can't be read.
 */
export function openLmdbReadModel(path: string, partitions: number): Promise<LmdbReadModel> {
  const file = { path, syncMode: 'after-visible', maxDbs: 80, isDerived: true } as const
  return openLmdbStore(file, (root: RootDatabase<unknown, string>) => {
    // `maxDbs` is for the databases of two forms. In one transaction: a new file would be written once for each table.
    const store = root.transactionSync(() => new LmdbViewStore(root, partitions, VIEWS_FORM))
    return { ...readModel(store), close: () => closeLmdbFile(root) }
  })
}
