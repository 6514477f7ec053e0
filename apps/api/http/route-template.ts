/**
 * A route as the contract spells it, from the path that it is registered under: `/v1/inboxes/:inboxId/messages/:messageId`
 * is `/v1/inboxes/{id}/messages/{message_id}`. The first id of a path is `id`, each further one is named for its resource.
 */
export function routeTemplate(path: string): string {
  let ids = 0
  return path.replaceAll(/:(\w+)/g, (_, name: string) => {
    if (!name.endsWith('Id')) return `{${name}}`
    ids += 1
    return ids === 1 ? '{id}' : `{${name.slice(0, -2)}_id}`
  })
}
