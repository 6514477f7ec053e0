/** What an attack does in a browser that shows the HTML of its mail without protection. */
export type Effect = 'script' | 'request' | 'navigation'

export interface HostileMail {
  /** Its name in the folder hostile-mails/, without `.eml`. */
  file: string
  attack: string
  /** None for attacks on sanitisers, on other programs, and on the time and memory of a browser. */
  effects: readonly Effect[]
  /** Whether Mayfly refuses to show it. */
  isRefused?: true
}

/** Attacks that were published against web mailers and mail tools, and variations of them. */
export const HOSTILE_MAILS: readonly HostileMail[] = [
  { file: 'script-element', attack: 'Scripts in the mail and from the web.', effects: ['script', 'request'] },
  {
    file: 'script-element-misspelled',
    attack: 'Script elements in forms that only browsers recognise.',
    effects: ['script'],
  },
  {
    file: 'event-handlers-of-body',
    attack: 'Event handlers of the body element, also of a second one.',
    effects: ['script'],
  },
  {
    file: 'event-handlers-of-images',
    attack: '`onerror` and `onload` of images. MailHog ran these (CVE-2022-50908).',
    effects: ['script', 'request'],
  },
  {
    file: 'event-handlers-without-a-click',
    attack: 'Event handlers that run by themselves, and by animations.',
    effects: ['script', 'request'],
  },
  {
    file: 'event-handlers-on-click',
    attack: 'Event handlers of text, and of an invisible cover.',
    effects: ['script'],
  },
  {
    file: 'event-handlers-misspelled',
    attack: 'Event handlers with unusual spaces, slashes and quotation marks.',
    effects: ['script', 'request'],
  },
  {
    file: 'javascript-links',
    attack: 'Links to `javascript:` URLs, in every spelling that browsers accept.',
    effects: ['script'],
  },
  {
    file: 'javascript-links-with-a-target',
    attack: '`javascript:` URLs for the same window, an opener and a form.',
    effects: ['script'],
  },
  {
    file: 'data-url-links',
    attack: 'Links to pages in `data:` URLs, and to files.',
    effects: ['script', 'request', 'navigation'],
  },
  {
    file: 'iframes',
    attack: 'Frames with scripts, HTML of their own, pages of the web and the API.',
    effects: ['script', 'request'],
  },
  { file: 'frameset', attack: 'A frameset instead of a body.', effects: ['script', 'request'] },
  {
    file: 'objects-and-embeds',
    attack: 'Objects, embeds and applets with scripts.',
    effects: ['script', 'request'],
  },
  {
    file: 'base-element',
    attack: 'A base that turns relative URLs into those of the attacker.',
    effects: ['request', 'navigation'],
  },
  {
    file: 'forms',
    attack: 'Forms and buttons that send data or run scripts.',
    effects: ['request', 'navigation'],
  },
  {
    file: 'fake-sign-in',
    attack: 'A form over the whole page that asks for a password.',
    effects: ['request', 'navigation'],
  },
  { file: 'svg-script', attack: 'Scripts, handlers and links in SVG.', effects: ['script', 'request'] },
  { file: 'svg-animate', attack: 'SVG animations that run handlers or set links.', effects: ['script'] },
  {
    file: 'svg-animate-href-with-a-space',
    attack: 'An animation of "href " (Roundcube, CVE-2024-37383).',
    effects: ['script'],
  },
  {
    file: 'svg-use-data-url',
    attack: 'SVG that uses SVG in a `data:` URL (Roundcube, CVE-2023-5631).',
    effects: ['script', 'request'],
  },
  {
    file: 'svg-images',
    attack: 'Images in SVG and its filters (Roundcube, CVE-2026-25916).',
    effects: ['request'],
  },
  { file: 'svg-foreign-object', attack: 'HTML in SVG.', effects: ['script', 'request'] },
  { file: 'mathml-links', attack: 'Links and HTML in MathML.', effects: ['script', 'request'] },
  {
    file: 'svg-attachment',
    attack: 'SVG and HTML attachments as images, also with the type of a PNG.',
    effects: [],
  },
  { file: 'meta-refresh', attack: 'A refresh to another page.', effects: ['request', 'navigation'] },
  { file: 'meta-refresh-to-data', attack: 'A refresh to a script.', effects: ['request', 'navigation'] },
  {
    file: 'meta-others',
    attack: 'Meta elements for cookies, a policy, the referrer and UTF-7.',
    effects: ['request'],
  },
  { file: 'link-elements', attack: 'Style sheets and all kinds of preloading.', effects: ['request'] },
  { file: 'dns-prefetch-of-links', attack: 'A link whose host name tells who opened the mail.', effects: [] },
  { file: 'css-import', attack: 'Style sheets that import others.', effects: ['request'] },
  { file: 'css-urls', attack: 'Every property of CSS that loads something.', effects: ['request'] },
  {
    file: 'css-urls-misspelled',
    attack: 'The same with escapes and unusual characters.',
    effects: ['request'],
  },
  {
    file: 'css-exfiltration',
    attack: 'Selectors and fonts that tell what the mail has, letter by letter.',
    effects: ['request'],
  },
  {
    file: 'css-scripts-of-old-browsers',
    attack: '`expression`, `behavior` and `-moz-binding`.',
    effects: [],
  },
  {
    file: 'css-covers-the-page',
    attack: 'A link over everything, with hidden pointer and endless animations.',
    effects: ['script', 'request'],
  },
  {
    file: 'style-breaks-out',
    attack: 'Styles, classes and comments that end early.',
    effects: ['script', 'request'],
  },
  {
    file: 'mutation-math-style',
    attack: 'Misnested forms that move a style into MathML (DOMPurify, 2020).',
    effects: [],
  },
  {
    file: 'mutation-svg-style',
    attack: 'A style in SVG, which a sanitiser may take for text.',
    effects: ['script', 'request'],
  },
  {
    file: 'mutation-svg-style-body',
    attack: 'A body in a style in SVG (Roundcube, CVE-2018-19206).',
    effects: ['script'],
  },
  {
    file: 'mutation-noscript',
    attack: 'Content that depends on whether scripts are enabled.',
    effects: ['script', 'request'],
  },
  {
    file: 'mutation-template',
    attack: 'Templates, which parsers keep apart.',
    effects: ['script', 'request'],
  },
  { file: 'mutation-annotation-xml', attack: 'MathML that switches to HTML and back.', effects: ['request'] },
  {
    file: 'mutation-select',
    attack: 'Elements that older parsers ignore within a select.',
    effects: ['script', 'request'],
  },
  {
    file: 'mutation-table',
    attack: 'Elements that parsers move out of tables.',
    effects: ['script', 'request'],
  },
  {
    file: 'mutation-raw-text',
    attack: 'Elements whose content is text, ended by an attribute.',
    effects: ['script', 'request'],
  },
  {
    file: 'mutation-comments',
    attack: 'Comments, CDATA and declarations that end early.',
    effects: ['script', 'request'],
  },
  {
    file: 'mutation-deep-nesting',
    attack: 'A tree that browsers flatten at a depth of 512 (DOMPurify, 2024).',
    effects: ['request'],
    isRefused: true,
  },
  {
    file: 'mutation-nesting-at-the-limit',
    attack: 'The same just below the limit of the sanitiser.',
    effects: ['request'],
  },
  {
    file: 'mutation-attributes',
    attack: 'Attributes that end early after they are written again.',
    effects: ['script', 'request', 'navigation'],
  },
  {
    file: 'mutation-entities',
    attack: 'Text that becomes markup if it is decoded twice.',
    effects: ['script', 'request'],
  },
  {
    file: 'images-of-the-web',
    attack: 'Every element that loads an image or a video.',
    effects: ['request'],
  },
  { file: 'dangling-markup-image', attack: 'An image whose URL takes in the rest of the page.', effects: [] },
  {
    file: 'dangling-markup-others',
    attack: 'A link, a style and a text area that do.',
    effects: ['request'],
  },
  {
    file: 'dangling-markup-unclosed-form',
    attack: 'An open form that takes in the rest of the page.',
    effects: ['request', 'navigation'],
  },
  {
    file: 'links-to-the-top',
    attack: 'Links that replace the console, or get a window handle and a referrer.',
    effects: ['request', 'navigation'],
  },
  {
    file: 'links-with-a-false-target',
    attack: 'Links whose text and title name another target.',
    effects: ['request', 'navigation'],
  },
  {
    file: 'links-to-the-console',
    attack: 'URLs of the API and of the console.',
    effects: ['request', 'navigation'],
  },
  {
    file: 'attachment-names',
    attack: 'File names and Content-IDs that are paths or HTML (MailDev, CVE-2024-27448).',
    effects: ['request'],
  },
  {
    file: 'attachment-as-script',
    attack: 'Attachments as scripts and style sheets (Mailpit served them on its own origin).',
    effects: [],
  },
  { file: 'data-url-images', attack: '`data:` URLs of SVG and HTML as images.', effects: [] },
  {
    file: 'subject-and-names',
    attack: 'HTML in the Subject, the sender and the title.',
    effects: ['script'],
  },
  { file: 'charset-utf-7', attack: 'Markup in UTF-7.', effects: ['script', 'request'] },
  {
    file: 'charset-iso-2022-jp',
    attack: 'An escape sequence of ISO-2022-JP that swallows a quotation mark.',
    effects: ['script', 'request'],
  },
  { file: 'xhtml', attack: 'XHTML with namespaces, entities and islands of data.', effects: ['script'] },
  { file: 'huge-table', attack: '50,000 cells.', effects: [] },
  { file: 'huge-spans', attack: 'Cells, lists, fonts and images of impossible sizes.', effects: [] },
  { file: 'huge-nesting', attack: '20,000 nested elements.', effects: [], isRefused: true },
  {
    file: 'huge-formatting',
    attack: 'Formatting elements that parsers open again in each paragraph.',
    effects: [],
    isRefused: true,
  },
  { file: 'huge-attributes', attack: 'An element with 20,000 attributes.', effects: [] },
  { file: 'slow-selectors', attack: 'Selectors that take long to match.', effects: [] },
  {
    file: 'slow-filters',
    attack: 'Filters and animations of large elements, which took gigabytes.',
    effects: [],
  },
  { file: 'slow-columns', attack: 'A million columns, which took gigabytes.', effects: [] },
]
