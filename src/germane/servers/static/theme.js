// Run before the first paint: a theme that was chosen here, instead of the system's.
const chosen = localStorage.getItem("germane-theme");
if (chosen) document.documentElement.dataset.theme = chosen;
