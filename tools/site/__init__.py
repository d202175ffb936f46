"""What builds the site: pages, figures, Python in the page. README.md tells what runs when."""
