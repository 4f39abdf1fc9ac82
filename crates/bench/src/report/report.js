for (const table of document.querySelectorAll('table.sortable')) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const sort = () => {
      const up = head.getAttribute('aria-sort') !== 'ascending';
      heads.forEach(other => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
      const key = row => { const cell = row.cells[column]; return !cell ? '' : cell.dataset.v === undefined ? cell.innerText : Number(cell.dataset.v); };
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => { const [x, y] = [key(a), key(b)]; const order = typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y)); return up ? order : -order; });
      table.tBodies[0].append(...rows);
    };
    head.tabIndex = 0;
    head.addEventListener('click', sort);
    head.addEventListener('keydown', event => { if (event.key === 'Enter') sort(); });
  });
}
addEventListener('beforeprint', () => document.querySelectorAll('details').forEach(item => { item.open = true; }));
