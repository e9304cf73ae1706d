import './styles.css';
import './store/theme';
import { createRoot } from 'react-dom/client';
import { onRefused } from './api/http';
import { preferred, speak } from './i18n';
import { App } from './shell/app';
import { session } from './store/shell';

onRefused(() => session.set('refused'));

const root = document.getElementById('root');
if (root) {
  try {
    await speak(preferred());
    createRoot(root).render(<App />);
  } catch (error) {
    // Without a dictionary, what the page itself says stays.
    root.append(String(error));
  }
}
