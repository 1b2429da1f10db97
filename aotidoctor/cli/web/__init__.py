"""A page in the browser that examines dropped files itself: nothing is sent anywhere."""
