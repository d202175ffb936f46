"""Let JupyterLab show the formgrader, which is a page within its page; a hub forbids such pages."""

# Jupyter puts get_config there when it loads this file.
c = get_config()

c.ServerApp.tornado_settings = {"headers": {"Content-Security-Policy": "frame-ancestors 'self'"}}
