import { useEffect, useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { useParameters, useSession } from '../navigation.js'
import { formatSubject } from '../parts/format.js'
import { useStored } from '../parts/stored.js'
import { visibleLine } from '../parts/visible-text.js'
import { text } from '../text.js'
import type { MessageList } from './message-list.js'
import { VIEWS } from './sidebar.js'

/** A page that is hidden has no stream of events (followed-events.ts), so it asks for new mail at this interval. */
const HIDDEN_POLL_MS = 10_000
const MAX_NEWEST = 10

const TITLES = new Map([
  ['/inboxes', text.inboxes.title],
  ['/refused', text.refused.title],
  ...VIEWS.map(([path, title]) => [path, title] as const),
])

/** Whether this browser shows notifications of new mail. */
export const useNotifications = () => useStored('notify', false)

/**
 * The number of unread mails in the title of the tab, and a mark on its icon; also while the page is hidden. If the user
 * wants them, notifications of mail that arrives meanwhile.
 */
export function useUnreadTitle({ messages, hasMore }: MessageList, unread: number): void {
  const { api } = useSession()
  const { path } = useLocation()
  const [{ q }] = useParameters()
  const [notifies] = useNotifications()
  const [arrivedHidden, setArrivedHidden] = useState<readonly string[]>([])
  const listed = new Set(messages.map(({ id }) => id))
  const count = unread + arrivedHidden.filter((id) => !listed.has(id)).length

  useEffect(() => {
    const [, , view = ''] = path.split('/')
    const name = visibleLine(q || (TITLES.get(`/${view}`) ?? text.allMail))
    document.title = `${count > 0 ? `(${count > 99 ? '99+' : count}) ` : ''}${name} – Mayfly`
    const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]')
    if (icon !== null) {
      icon.dataset['read'] ??= icon.href
      icon.href = (count > 0 ? icon.dataset['unread'] : icon.dataset['read']) ?? icon.href
    }
  }, [count, path, q])

  useEffect(() => {
    const poll = async () => {
      if (document.visibilityState === 'visible') {
        setArrivedHidden((known) => (known.length === 0 ? known : []))
        return
      }
      // What is new is only known once there is a list.
      if (messages.length === 0 && hasMore) return
      const newest = await api.messages.list({ order: 'desc', limit: MAX_NEWEST })
      const since = messages[0]?.received_at ?? ''
      const arrived = newest.filter((each) => each.received_at > since && !listed.has(each.id))
      if (notifies && Notification.permission === 'granted') {
        for (const { id, subject, sender } of arrived.filter(({ id }) => !arrivedHidden.includes(id)))
          // The tag shows a mail once, also if several tabs are open.
          new Notification(formatSubject(subject), {
            body: visibleLine(sender),
            tag: id,
          })
      }
      setArrivedHidden(arrived.map(({ id }) => id))
    }
    // A poll that fails is repeated at the next interval.
    const start = () => void poll().catch(() => undefined)
    const timer = setInterval(start, HIDDEN_POLL_MS)
    return () => clearInterval(timer)
  }, [messages, arrivedHidden, notifies])
}
