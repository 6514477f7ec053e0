/** Called with what a mail uses, such as `element:div`, and its position in the HTML. */
export type OnUse = (name: string, at: number) => void

/** Characters of a URL's end that may have the type of the image. */
const END_LENGTH = 10
const OTHER_NAMES = new Map([
  ['x-icon', 'ico'],
  ['vnd.microsoft.icon', 'ico'],
])

/** The type of an image, by the extension of its URL or by the media type of its data. */
export function imageUses(url: string, at: number, onUse: OnUse): void {
  const [, subtype = '', parameters = ''] = /^data:image\/([\w.-]{1,50})([^,]{0,200})/i.exec(url) ?? []
  if (subtype !== '') {
    onUse(`image:${OTHER_NAMES.get(subtype.toLowerCase()) ?? subtype.toLowerCase()}`, at)
    if (/;base64$/i.test(parameters)) onUse('image:base64', at)
    return
  }
  const end = url.search(/[?#]/)
  const path = (end < 0 ? url : url.slice(0, end)).slice(-END_LENGTH)
  const [, extension = ''] = /\.([a-z0-9]{2,5})$/i.exec(path) ?? []
  if (extension !== '') onUse(`image:${extension.toLowerCase()}`, at)
}
