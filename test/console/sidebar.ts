import type { Page } from 'playwright-core'

/** The views that members with different permissions see. */
export const MAIL_VIEWS = ['mail', 'refused', 'inboxes', 'smtp']
export const VIEWS_OF_ALL = ['keys', 'usage', 'account', 'status']
export const AUDITOR_VIEWS = [...VIEWS_OF_ALL, 'activity', 'audit']
export const ADMIN_VIEWS = [...AUDITOR_VIEWS, 'domains', 'members']

/** The URLs of the views that the sidebar links to, without their dialogs. */
export async function linksOf(page: Page): Promise<string[]> {
  await page.getByRole('navigation').getByRole('link', { name: 'Account' }).waitFor()
  const paths = await page.evaluate<string[]>(
    `[...document.querySelectorAll('nav a[href^="/console/"]')].map((link) => link.getAttribute('href'))`,
  )
  return paths.filter((path) => !path.includes('dialog='))
}

/** The names of these views, sorted. */
export async function viewsIn(page: Page): Promise<string[]> {
  const names = (await linksOf(page)).flatMap((link) => link.split(/[/?]/)[2] ?? [])
  return [...new Set(names)].sort()
}
