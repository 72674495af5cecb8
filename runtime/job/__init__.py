"""The main job: real peers distribute real files on loopback, and Spark decodes what they said."""
