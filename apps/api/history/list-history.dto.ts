import { IsCursor, IsLimit, IsOrder } from '../http/list-parameters.js'

/** The query of GET /v1/inboxes/{id}/history. */
export class ListHistory {
  @IsLimit({ most: 100 })
  limit: number = 25

  @IsOrder()
  order: 'asc' | 'desc' = 'asc'

  @IsCursor('Where to go on: what `Link` or `Mayfly-Cursor` has.')
  cursor?: string
}
